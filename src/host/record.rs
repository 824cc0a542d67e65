//! Small records that outlive the process: what the node must know of the past and can learn from
//! nothing else. One JSON file a record, `DIR/KIND/KEY.json`.
//!
//! Nobody waits until they are on the disk. What they prove, they prove until the machine starts anew, because each is of an
//! appearance of a device ([`DeviceIncarnation`](super::DeviceIncarnation)). After that they only tell whose a disk was; one that a crash
//! of the machine emptied tells nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::blocking::blocking;
use super::error::{HostError, Result};
use crate::base::Deadline;

/// The name of the file that is written to see that one can be.
const TRIAL: &str = "trial";

/// The records of one node.
#[derive(Debug, Clone)]
pub struct Records {
    dir: PathBuf,
}

impl Records {
    /// The records in this directory, which is made with the first one.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Writes a record, in place of one that was there.
    ///
    /// # Errors
    /// When it cannot be written; then what was there before still is.
    pub async fn put<T: Serialize + Sync>(
        &self,
        deadline: Deadline,
        kind: &'static str,
        key: &str,
        record: &T,
    ) -> Result<()> {
        let path = self.path(kind, key);
        let text = serde_json::to_vec(record)
            .map_err(|error| HostError::io("write the record", &path, io::Error::from(error)))?;
        blocking(deadline, "write the record", &path, move |path| {
            write(path, &text).map_err(|error| HostError::io("write the record", path, error))
        })
        .await
    }

    /// Reads a record; none where there is none, or one that a crash of the machine emptied.
    ///
    /// # Errors
    /// When it cannot be read, or is not such a record.
    pub async fn get<T: DeserializeOwned + Send + 'static>(
        &self,
        deadline: Deadline,
        kind: &'static str,
        key: &str,
    ) -> Result<Option<T>> {
        let path = self.path(kind, key);
        blocking(deadline, "read the record", &path, |path| {
            let text = match fs::read(path) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(HostError::io("read the record", path, error)),
            };
            if text.is_empty() {
                return Ok(None);
            }
            serde_json::from_slice(&text)
                .map(Some)
                .map_err(|error| HostError::UnexpectedFormat {
                    path: path.to_owned(),
                    reason: error.to_string(),
                })
        })
        .await
    }

    /// The keys of all records of a kind, sorted.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub async fn keys(&self, deadline: Deadline, kind: &'static str) -> Result<Vec<String>> {
        let dir = self.dir.join(kind);
        blocking(deadline, "list the records in", &dir, |dir| {
            keys(dir).map_err(|error| HostError::io("list the records in", dir, error))
        })
        .await
    }

    /// Removes a record; one that is not there is fine.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub async fn remove(&self, deadline: Deadline, kind: &'static str, key: &str) -> Result<()> {
        let path = self.path(kind, key);
        blocking(
            deadline,
            "remove the record",
            &path,
            |path| match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(HostError::io("remove the record", path, error))
                }
                _ => Ok(()),
            },
        )
        .await
    }

    /// Writes a file there and takes it away again, to see that it can be done. A directory that is not there is not made: then
    /// it is seen whether it could be.
    ///
    /// # Errors
    /// When it cannot be done.
    pub async fn try_out(&self, deadline: Deadline) -> Result<()> {
        blocking(deadline, "write to", &self.dir, |dir| {
            try_out(dir).map_err(|error| HostError::io("write to", dir, error))
        })
        .await
    }

    /// Keys are ids and serials, which have no slashes.
    fn path(&self, kind: &str, key: &str) -> PathBuf {
        self.dir.join(kind).join(format!("{key}.json"))
    }
}

fn keys(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
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

fn try_out(dir: &Path) -> io::Result<()> {
    if dir.try_exists()? {
        let file = dir.join(TRIAL);
        fs::write(&file, TRIAL)?;
        return fs::remove_file(&file);
    }
    let above = dir.ancestors().find(|above| above.is_dir());
    let above = above.ok_or(io::ErrorKind::NotFound)?;
    let may = AccessFlags::W_OK | AccessFlags::X_OK;
    Ok(access(above, may)?)
}

/// Replaces the file by a rename, so that a reader sees the old record or the new one.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(dir)?;
    let unfinished = path.with_extension("json.new");
    fs::write(&unfinished, text)?;
    fs::rename(unfinished, path)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(30))
    }

    #[tokio::test]
    async fn a_record_is_there_until_it_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(dir.path().join("state"));
        let get = || records.get::<u32>(soon(), "kind", "d-bp1");
        assert_eq!(get().await.unwrap(), None);
        records.put(soon(), "kind", "d-bp1", &7).await.unwrap();
        records.put(soon(), "kind", "d-bp1", &8).await.unwrap();
        assert_eq!(get().await.unwrap(), Some(8));
        assert_eq!(records.keys(soon(), "kind").await.unwrap(), ["d-bp1"]);
        records.remove(soon(), "kind", "d-bp1").await.unwrap();
        records.remove(soon(), "kind", "d-bp1").await.unwrap();
        assert_eq!(get().await.unwrap(), None);
        for kind in ["kind", "other"] {
            assert!(records.keys(soon(), kind).await.unwrap().is_empty());
        }
    }

    #[tokio::test]
    async fn a_directory_is_tried_out_and_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("not/yet");
        Records::new(&state).try_out(soon()).await.unwrap();
        assert!(!state.exists());
        fs::create_dir_all(&state).unwrap();
        Records::new(&state).try_out(soon()).await.unwrap();
        assert_eq!(fs::read_dir(&state).unwrap().count(), 0);
        // Below a file nothing can be, whoever asks.
        fs::write(state.join("file"), "").unwrap();
        let below = Records::new(state.join("file/state")).try_out(soon()).await;
        assert!(below.is_err());
    }

    #[tokio::test]
    async fn a_record_that_does_not_read_is_an_error_and_an_empty_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(dir.path());
        fs::create_dir(dir.path().join("kind")).unwrap();
        fs::write(dir.path().join("kind/d-bp1.json"), "x").unwrap();
        let read = records.get::<u32>(soon(), "kind", "d-bp1").await;
        assert!(
            matches!(read, Err(HostError::UnexpectedFormat { .. })),
            "{read:?}"
        );
        fs::write(dir.path().join("kind/d-bp1.json"), "").unwrap();
        let read = records.get::<u32>(soon(), "kind", "d-bp1").await;
        assert!(matches!(read, Ok(None)), "{read:?}");
    }
}
