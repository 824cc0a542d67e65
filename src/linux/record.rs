//! Records of the node that survive a restart of the process: one JSON file per record, `DIR/KIND/KEY.json`.
//!
//! Writes are not flushed to the disk. A record proves something only until a reboot, because it contains the
//! incarnation of a device ([`DeviceIncarnation`](super::DeviceIncarnation)). After a reboot it only shows which volume
//! a disk was; a record that a crash of the machine left empty is ignored.

use std::fs;
use std::io::{self, ErrorKind::NotFound};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::{AccessFlags, access};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::blocking::blocking_io;
use super::error::{HostError, IoResult, Result};
use crate::base::Deadline;

const TIMEOUT: Duration = Duration::from_secs(30);

/// The name and content of the file that [`Records::test_write`] writes.
const TRIAL: &str = "trial";

#[derive(Debug, Clone)]
pub struct Records(PathBuf);

impl Records {
    /// The records in this directory, which the first write creates.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self(dir.into())
    }

    pub async fn put<T: Serialize + Sync>(&self, kind: &'static str, key: &str, record: &T) -> Result<()> {
        const STEP: &str = "write the record";
        let path = self.path(kind, key);
        let text = serde_json::to_vec(record).io_context(STEP, &path)?;
        on_disk(STEP, &path, move |path| write(path, &text)).await
    }

    /// Reads a record; `None` if it does not exist or is empty.
    pub async fn get<T: DeserializeOwned>(&self, kind: &'static str, key: &str) -> Result<Option<T>> {
        let path = self.path(kind, key);
        let read = |path: &Path| fs::read(path).none_if(&[NotFound]);
        let text = on_disk("read the record", &path, read).await?;
        let text = text.filter(|text| !text.is_empty());
        let record = text.map(|text| serde_json::from_slice(&text)).transpose();
        record.map_err(|error| HostError::unexpected_format(&path, error))
    }

    pub async fn keys(&self, kind: &'static str) -> Result<Vec<String>> {
        on_disk("list the records in", &self.0.join(kind), keys).await
    }

    pub async fn remove(&self, kind: &'static str, key: &str) -> Result<()> {
        let remove = |path: &Path| fs::remove_file(path).none_if(&[NotFound]).map(drop);
        on_disk("remove the record", &self.path(kind, key), remove).await
    }

    /// Tests whether records can be written, with a file that is removed again. A missing directory is not created;
    /// then the permissions of the nearest existing one are checked.
    pub async fn test_write(&self) -> Result<()> {
        on_disk("write to", &self.0, test_write).await
    }

    /// Keys are IDs and serials, which contain no slashes.
    fn path(&self, kind: &str, key: &str) -> PathBuf {
        self.0.join(kind).join(format!("{key}.json"))
    }
}

async fn on_disk<T: Send + 'static>(
    step: &'static str,
    path: &Path,
    call: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T> {
    blocking_io(Deadline::after(TIMEOUT), step, path, call).await
}

fn keys(dir: &Path) -> io::Result<Vec<String>> {
    let Some(entries) = fs::read_dir(dir).none_if(&[NotFound])? else {
        return Ok(Vec::new());
    };
    let mut keys = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let key = name.to_str().and_then(|name| name.strip_suffix(".json"));
        keys.extend(key.map(str::to_owned));
    }
    keys.sort();
    Ok(keys)
}

fn test_write(dir: &Path) -> io::Result<()> {
    if dir.try_exists()? {
        let file = dir.join(TRIAL);
        fs::write(&file, TRIAL)?;
        return fs::remove_file(&file);
    }
    let existing = dir.ancestors().find(|parent| parent.is_dir());
    let existing = existing.ok_or(NotFound)?;
    Ok(access(existing, AccessFlags::W_OK | AccessFlags::X_OK)?)
}

/// Replaces the file by a rename, so that a reader gets the old record or the new one.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(dir)?;
    let unfinished = path.with_extension("json.new");
    fs::write(&unfinished, text)?;
    fs::rename(unfinished, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_record_exists_until_it_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(dir.path().join("state"));
        let get = || records.get::<u32>("kind", "d-bp1");
        assert_eq!(get().await.unwrap(), None);
        records.put("kind", "d-bp1", &7).await.unwrap();
        records.put("kind", "d-bp1", &8).await.unwrap();
        assert_eq!(get().await.unwrap(), Some(8));
        assert_eq!(records.keys("kind").await.unwrap(), ["d-bp1"]);
        records.remove("kind", "d-bp1").await.unwrap();
        records.remove("kind", "d-bp1").await.unwrap();
        assert_eq!(get().await.unwrap(), None);
        for kind in ["kind", "other"] {
            assert!(records.keys(kind).await.unwrap().is_empty());
        }
    }

    #[tokio::test]
    async fn the_write_test_leaves_the_directory_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("not/yet");
        Records::new(&state).test_write().await.unwrap();
        assert!(!state.exists());
        fs::create_dir_all(&state).unwrap();
        Records::new(&state).test_write().await.unwrap();
        assert_eq!(fs::read_dir(&state).unwrap().count(), 0);
        // A file cannot have entries, not even for root.
        fs::write(state.join("file"), "").unwrap();
        let below = Records::new(state.join("file/state")).test_write().await;
        assert!(below.is_err());
    }

    #[tokio::test]
    async fn an_invalid_record_is_an_error_and_an_empty_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(dir.path());
        fs::create_dir(dir.path().join("kind")).unwrap();
        fs::write(dir.path().join("kind/d-bp1.json"), "x").unwrap();
        let read = records.get::<u32>("kind", "d-bp1").await;
        assert!(matches!(read, Err(HostError::UnexpectedFormat { .. })), "{read:?}");
        fs::write(dir.path().join("kind/d-bp1.json"), "").unwrap();
        let read = records.get::<u32>("kind", "d-bp1").await;
        assert!(matches!(read, Ok(None)), "{read:?}");
    }
}
