//! Access keys and where they come from. `Ok(None)` means "not configured here, ask the next";
//! an error means "configured, but broken".

use std::fmt::Debug;
use std::path::PathBuf;

use async_trait::async_trait;
use secrecy::SecretString;

mod chain;
mod directory;
mod environment;
mod fixed;

pub use chain::Chain;
pub use directory::Directory;
pub use environment::Environment;
pub use fixed::Fixed;

/// An access key, with a token where it is a temporary one. Debug prints none of it.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// `AccessKeyId`: not secret by itself, yet it never goes into a log either.
    pub access_key_id: SecretString,
    /// `AccessKeySecret`.
    pub secret: SecretString,
    /// `SecurityToken` of STS credentials.
    pub security_token: Option<SecretString>,
}

/// Why there are no credentials. Never carries any part of them.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// Nothing was configured.
    #[error("no credentials are configured: {0}")]
    Missing(String),
    /// Half of a pair was configured.
    #[error("{place} has {present} but not {absent}")]
    Incomplete {
        /// Where.
        place: String,
        /// What is there.
        present: String,
        /// What is not.
        absent: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// A source of credentials.
#[async_trait]
pub trait Provide: Debug + Send + Sync {
    /// The credentials to sign with now; none when this source is not configured.
    ///
    /// # Errors
    /// When it is configured and broken.
    async fn provide(&self) -> Result<Option<Credentials>, CredentialError>;
}

impl Credentials {
    /// A long-lived access key.
    #[must_use]
    pub fn new(access_key_id: impl Into<String>, secret: impl Into<String>) -> Self {
        Self {
            access_key_id: access_key_id.into().into(),
            secret: secret.into().into(),
            security_token: None,
        }
    }
}

/// Pairs up what was found: both, neither, or an error that names the missing half.
fn assemble(
    place: &str,
    id: (&str, Option<String>),
    secret: (&str, Option<String>),
    token: Option<String>,
) -> Result<Option<Credentials>, CredentialError> {
    let incomplete = |present: &str, absent: &str| CredentialError::Incomplete {
        place: place.to_owned(),
        present: present.to_owned(),
        absent: absent.to_owned(),
    };
    match (id.1, secret.1) {
        (Some(id), Some(secret)) => {
            let mut credentials = Credentials::new(id, secret);
            credentials.security_token = token.map(Into::into);
            Ok(Some(credentials))
        }
        (None, None) => Ok(None),
        (Some(_), None) => Err(incomplete(id.0, secret.0)),
        (None, Some(_)) => Err(incomplete(secret.0, id.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_prints_no_part_of_a_credential() {
        let mut credentials = Credentials::new("LTAI5tKEY", "hunter2");
        credentials.security_token = Some("CAIStoken".to_owned().into());
        let text = format!("{credentials:?}");
        for part in ["LTAI5tKEY", "hunter2", "CAIStoken"] {
            assert!(!text.contains(part), "{text}");
        }
    }
}
