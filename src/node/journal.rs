//! The journal of mkfs: a record from the proof that a disk is blank until its filesystem is on the disk. A mkfs that
//! is cut off in between leaves data of which only this record knows that it is nobody's.
//!
//! It counts within one appearance of one device: meanwhile nobody can have written to the disk from elsewhere, and all that a
//! killed mkfs wrote reads back in its order, also what no disk has yet. After a restart of the machine, or when the
//! disk was away, it proves nothing. It is removed before the filesystem is mounted, so no record is there of a disk in use.

use serde::{Deserialize, Serialize};

use super::observe::{CallContext, quick};
use super::request::Volume;
use super::{Node, Result};
use crate::host::{Appearance, Device, HostError};
use crate::model::Filesystem;

const KIND: &str = "format";

/// What is written before mkfs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    appearance: Appearance,
    serial: String,
    bytes: u64,
    filesystem: String,
}

/// What the journal knows of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Journal {
    /// No mkfs was begun.
    Nothing,
    /// A mkfs was begun on this very device, which had been proven blank, and its end was not seen.
    Ours,
    /// A mkfs was begun, but of what has been written since it is not known by whom.
    Stale {
        /// The filesystem, in words.
        filesystem: String,
        /// What is different now.
        why: &'static str,
    },
}

impl Node {
    /// What the journal knows of the volume's device.
    pub(super) async fn journal(
        &self,
        volume: &Volume,
        device: &Device,
        at: CallContext<'_>,
    ) -> Result<Journal> {
        let record = self.records.get(quick(), KIND, volume.id.as_str()).await;
        let record: Record = match record {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(Journal::Nothing),
            // A crash of the machine may leave anything.
            Err(HostError::Format { .. }) => {
                return Ok(Journal::Stale {
                    filesystem: "filesystem of an unknown kind".to_owned(),
                    why: "its record cannot be read any more",
                });
            }
            Err(error) => return Err(at.failed()(error)),
        };
        let now = self.appearance(device, at).await?;
        let why = if now.as_ref() != Some(&record.appearance) {
            "since then the machine was started anew, or the disk was away"
        } else if record.serial != volume.serial.as_str() {
            "it was of a device with another serial"
        } else if record.bytes != device.size.0 {
            "the disk has another size now"
        } else {
            return Ok(Journal::Ours);
        };
        Ok(Journal::Stale {
            filesystem: record.filesystem,
            why,
        })
    }

    /// Notes that mkfs is about to begin on a device that was just proven blank. Where the kernel does not
    /// count appearances of disks (before 5.15), a record could prove nothing, and there is none.
    pub(super) async fn begin_format(
        &self,
        volume: &Volume,
        device: &Device,
        filesystem: Filesystem,
        at: CallContext<'_>,
    ) -> Result<()> {
        let Some(appearance) = self.appearance(device, at).await? else {
            return Ok(());
        };
        let record = Record {
            appearance,
            serial: volume.serial.to_string(),
            bytes: device.size.0,
            filesystem: filesystem.to_string(),
        };
        let key = volume.id.as_str();
        let put = self.records.put(quick(), KIND, key, &record).await;
        put.map_err(at.failed())
    }

    /// Forgets that a mkfs was begun: its filesystem is on the disk, or the disk is about to be used in another way.
    pub(super) async fn forget_format(&self, volume: &Volume, at: CallContext<'_>) -> Result<()> {
        let removed = self.records.remove(quick(), KIND, volume.id.as_str()).await;
        removed.map_err(at.failed())
    }

    async fn appearance(&self, device: &Device, at: CallContext<'_>) -> Result<Option<Appearance>> {
        let boot = self.host.boot_id(quick()).await.map_err(at.failed())?;
        Ok(Appearance::of(&boot, device))
    }
}
