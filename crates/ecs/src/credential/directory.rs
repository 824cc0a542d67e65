//! Credentials in a mounted Secret directory, one file per key.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use async_trait::async_trait;

use super::{CredentialError, CredentialProvider, Credentials, from_parts};
use crate::base::lock;

/// File names: the project's, then those of the vendor's charts.
const PAIRS: [(&str, &str); 2] = [("access-key-id", "access-key-secret"), ("id", "secret")];
const TOKEN: &str = "security-token";

/// A directory that may be updated, such as a mounted Secret. Its version is checked for every signature, so that the
/// next call uses a rotated key. Kubelet writes each version into a separate directory, which never changes.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// The version that was read last, and its credentials.
    cached: Mutex<Option<(PathBuf, Credentials)>>,
}

impl Directory {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            cached: Mutex::default(),
        }
    }
}

#[async_trait]
impl CredentialProvider for Directory {
    async fn provide(&self) -> Result<Credentials, CredentialError> {
        // Kubelet replaces the `..data` link when the Secret changes. Resolving it once ensures that id and secret are
        // of the same version.
        let data = self.path.join("..data");
        let version = match tokio::fs::read_link(&data).await {
            Ok(version) => self.path.join(version),
            Err(error) if error.kind() == ErrorKind::NotFound => self.path.clone(),
            Err(source) => return Err(CredentialError::Unreadable { path: data, source }),
        };
        let cached = || lock(&self.cached);
        if let Some((known, credentials)) = &*cached()
            && *known == version
        {
            return Ok(credentials.clone());
        }
        let place = format!("the Secret directory {}", self.path.display());
        for (id, secret) in PAIRS {
            let parts = [
                (id, read(&version, id).await?),
                (secret, read(&version, secret).await?),
                (TOKEN, read(&version, TOKEN).await?),
            ];
            if let Some(found) = from_parts(&place, &parts)? {
                // Files in the directory itself may change at any time.
                *cached() = (version != self.path).then(|| (version, found.clone()));
                return Ok(found);
            }
        }
        Err(CredentialError::NotConfigured(format!(
            "{place} has neither access-key-id and access-key-secret nor id and secret, or they are empty"
        )))
    }
}

async fn read(directory: &Path, name: &str) -> Result<Option<Vec<u8>>, CredentialError> {
    let path = directory.join(name);
    match tokio::fs::read(&path).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(CredentialError::Unreadable { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use secrecy::ExposeSecret;

    use super::*;

    fn version(root: &Path, name: &str, secret: &str) {
        let version = root.join(name);
        std::fs::create_dir(&version).unwrap();
        std::fs::write(version.join("access-key-id"), "key\n").unwrap();
        std::fs::write(version.join("access-key-secret"), secret).unwrap();
    }

    #[tokio::test]
    async fn the_next_call_uses_a_rotated_secret() {
        let root = tempfile::tempdir().unwrap();
        version(root.path(), "..v1", "old");
        version(root.path(), "..v2", "new\n");
        symlink("..v1", root.path().join("..data")).unwrap();
        let directory = Directory::new(root.path());
        let secret = |found: Credentials| found.access_key_secret.expose_secret().to_owned();
        assert_eq!(secret(directory.provide().await.unwrap()), "old");
        symlink("..v2", root.path().join("..next")).unwrap();
        std::fs::rename(root.path().join("..next"), root.path().join("..data")).unwrap();
        assert_eq!(secret(directory.provide().await.unwrap()), "new");
    }

    #[tokio::test]
    async fn the_vendor_charts_file_names_work_too() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("id"), "key").unwrap();
        std::fs::write(root.path().join("secret"), "s").unwrap();
        let found = Directory::new(root.path()).provide().await.unwrap();
        assert_eq!(found.access_key_id.expose_secret(), "key");
    }

    #[tokio::test]
    async fn an_empty_directory_names_the_expected_files() {
        let root = tempfile::tempdir().unwrap();
        let error = Directory::new(root.path()).provide().await.unwrap_err();
        assert!(error.to_string().contains("has neither access-key-id"), "{error}");
    }
}
