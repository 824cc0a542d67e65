//! The format record: exists from the blank check until the filesystem is complete. It proves that data left by an
//! interrupted mkfs can be discarded.
//!
//! It is valid for one incarnation of the device: within it no other node can have written to the disk, and everything
//! that a killed mkfs wrote can be read back, including data in the page cache. After a reboot or a detach it proves
//! nothing. It is removed before the filesystem is mounted, so that no disk in use has a record.

use serde::{Deserialize, Serialize};

use super::Result;
use super::device_check::incarnation;
use super::observe::CallContext;
use crate::linux::{Device, DeviceIncarnation, HostError, Records};
use crate::model::Filesystem;

const KIND: &str = "format";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct MkfsRecord {
    incarnation: DeviceIncarnation,
    serial: String,
    bytes: u64,
    filesystem: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FormatRecord {
    /// No mkfs was started.
    None,
    /// A mkfs of this incarnation of the device, which was blank before, did not complete.
    Current,
    /// A mkfs was started, but others may have written to the disk since.
    Stale { filesystem: String, reason: &'static str },
}

#[derive(Debug, Clone)]
pub(super) struct FormatRecords(pub(super) Records);

impl FormatRecords {
    pub(super) async fn get(&self, device: &Device, call: CallContext<'_>) -> Result<FormatRecord> {
        let record = self.0.get(KIND, call.id().as_str()).await;
        let record: MkfsRecord = match record {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(FormatRecord::None),
            // A crash of the machine can leave an incomplete record.
            Err(HostError::UnexpectedFormat { .. }) => {
                return Ok(FormatRecord::Stale {
                    filesystem: "filesystem of an unknown kind".to_owned(),
                    reason: "its record is unreadable",
                });
            }
            Err(error) => return Err(call.failed()(error)),
        };
        let now = incarnation(call, device).await?;
        let reason = if now.as_ref() != Some(&record.incarnation) {
            "the machine was rebooted or the disk was detached since"
        } else if record.serial != call.volume.serial.as_str() {
            "the device had another serial"
        } else if record.bytes != device.size.0 {
            "the disk has another size now"
        } else {
            return Ok(FormatRecord::Current);
        };
        Ok(FormatRecord::Stale {
            filesystem: record.filesystem,
            reason,
        })
    }

    /// Writes the record before mkfs starts on a blank device. A loop device on a kernel
    /// before 5.15 has no incarnation, so a record would prove nothing, and none is written.
    pub(super) async fn put(&self, device: &Device, filesystem: Filesystem, call: CallContext<'_>) -> Result<()> {
        let Some(incarnation) = incarnation(call, device).await? else {
            return Ok(());
        };
        let record = MkfsRecord {
            incarnation,
            serial: call.volume.serial.to_string(),
            bytes: device.size.0,
            filesystem: filesystem.to_string(),
        };
        let key = call.id().as_str();
        call.wrap(self.0.put(KIND, key, &record)).await
    }

    /// Removes the record: the filesystem is complete, or the disk is about to be used in another way.
    pub(super) async fn remove(&self, call: CallContext<'_>) -> Result<()> {
        call.wrap(self.0.remove(KIND, call.id().as_str())).await
    }
}
