//! Records of staged volumes. They identify attached disks as volumes of this driver while no pod uses them, and store
//! the incarnation of the device at the time of the mount. They also store the serial of the publish context for calls
//! that carry only the volume ID. Mounts are never derived from these records.

use serde::{Deserialize, Serialize};

use super::Result;
use super::device_check::incarnation;
use super::observe::{CallContext, quick};
use super::plan::Identity;
use super::request::Volume;
use crate::base::error_chain;
use crate::linux::{Device, DeviceIncarnation, HostError, Records};
use crate::model::{DiskId, Fsck, Serial};

/// The kind of these records. Their key is the volume ID.
const KIND: &str = "volume";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StagedRecord {
    pub(super) serial: String,
    /// `None` for a loop device on a kernel without `diskseq` (before 5.15).
    pub(super) incarnation: Option<DeviceIncarnation>,
    /// How the filesystem is checked when the volume is staged again. `None` for a block volume.
    #[serde(default)]
    pub(super) fsck: Option<Fsck>,
}

#[derive(Debug, Clone)]
pub(super) struct StagedRecords(pub(super) Records);

impl StagedRecords {
    /// The volume of a call that carries only the ID: with the recorded serial, or the default one.
    ///
    /// # Errors
    /// If the record exists and cannot be read now: without its serial, a disk in use would count as absent.
    pub(super) async fn volume(&self, call: CallContext<'_>) -> Result<Volume> {
        let record = self.read(call).await?;
        let serial = record.and_then(|record| Serial::new(&record.serial));
        Ok(Volume::new(call.id().clone(), serial))
    }

    /// The record; `None` also for one whose content is not a record.
    async fn read(&self, call: CallContext<'_>) -> Result<Option<StagedRecord>> {
        match self.0.get(KIND, call.id().as_str()).await {
            Err(HostError::UnexpectedFormat { .. }) => Ok(None),
            record => record.map_err(call.failed()),
        }
    }

    /// Records that a volume is about to be staged.
    ///
    /// # Errors
    /// If the record cannot be written and the serial cannot be derived from the ID, so that later calls would not find
    /// the disk. For other volumes a failure is logged, and staging continues.
    pub(super) async fn put(&self, call: CallContext<'_>, device: &Device, fsck: Option<Fsck>) -> Result<()> {
        let record = StagedRecord {
            serial: call.volume.serial.to_string(),
            incarnation: incarnation(call, device).await.ok().flatten(),
            fsck,
        };
        match self.0.put(KIND, call.id().as_str(), &record).await {
            Err(error) if call.volume.has_default_serial() => {
                let error = error_chain(&error);
                tracing::warn!(disk.id = %call.id(), error, "cannot write the staging record");
                Ok(())
            }
            put => put.map_err(call.failed()),
        }
    }

    /// Removes the record of an unstaged volume. A failure is logged.
    pub(super) async fn remove(&self, volume: &DiskId) {
        if let Err(error) = self.0.remove(KIND, volume.as_str()).await {
            let error = error_chain(&error);
            tracing::warn!(disk.id = %volume, error, "cannot remove the staging record");
        }
    }

    /// Returns `None` if the record does not exist or cannot be read.
    pub(super) async fn get(&self, volume: &DiskId) -> Option<StagedRecord> {
        match self.0.get(KIND, volume.as_str()).await {
            Ok(record) => record,
            Err(error) => {
                let error = error_chain(&error);
                tracing::warn!(disk.id = %volume, error, "cannot read the staging record");
                None
            }
        }
    }

    pub(super) async fn volumes(&self) -> Vec<DiskId> {
        let keys = self.0.keys(KIND).await.unwrap_or_else(|error| {
            tracing::warn!(error = error_chain(&error), "cannot list the staging records");
            Vec::new()
        });
        keys.iter().filter_map(|key| key.parse().ok()).collect()
    }

    pub(super) async fn all(&self) -> Vec<StagedRecord> {
        let mut all = Vec::new();
        for volume in self.volumes().await {
            all.extend(self.get(&volume).await);
        }
        all
    }

    /// Whether the device was removed or replaced after the volume was staged. If so, the mounts of that time no longer
    /// work, even if the name and number of the device are the same.
    pub(super) async fn has_new_incarnation(&self, call: CallContext<'_>, device: &Device) -> bool {
        let staged = self.get(call.id()).await;
        let then = staged.and_then(|staged| staged.incarnation);
        let now = incarnation(call, device).await;
        then.zip(now.ok().flatten()).is_some_and(|(then, now)| then != now)
    }

    /// The device on which the volume was staged, if it still is the same incarnation and does
    /// not report another serial.
    pub(super) async fn staged_device(&self, call: CallContext<'_>) -> Result<Option<Device>> {
        let Some(staged) = self.read(call).await? else {
            return Ok(None);
        };
        let boot = call.wrap(call.host.boot_id(quick())).await?;
        let devices = call.wrap(call.host.devices(quick())).await?;
        let is_same = |device: &Device| {
            let now = device.incarnation(&boot);
            let serial = device.serial.as_ref();
            now.is_some() && now == staged.incarnation && serial.is_none_or(|serial| serial.as_str() == staged.serial)
        };
        Ok(devices.into_iter().find(is_same))
    }

    /// Identifies a device as the volume's without a search, for calls that release the device. The serial decides. A
    /// device that does not report one is identified by its recorded incarnation. A device whose serial is pending is
    /// never another disk's by default: only a record of that disk proves it.
    pub(super) async fn identify(&self, device: &Device, call: CallContext<'_>) -> Result<Identity> {
        let reported = device.serial.as_ref().map(Serial::as_str);
        if let Some(serial) = reported.or(device.backing_serial()) {
            return Ok(identity_of(serial, call));
        }
        Ok(match self.recorded(device, call).await? {
            Some(identity) => identity,
            None if device.serial_pending => Identity::Unknown,
            None => Identity::Other,
        })
    }

    /// Whether this incarnation of the device is recorded for the volume or for another one; `None` without a record.
    pub(super) async fn recorded(&self, device: &Device, call: CallContext<'_>) -> Result<Option<Identity>> {
        let Some(now) = incarnation(call, device).await? else {
            return Ok(None);
        };
        let mut records = self.all().await;
        records.retain(|record| record.incarnation.as_ref() == Some(&now));
        let is_own = |record: &StagedRecord| record.serial == call.volume.serial.as_str();
        let own = records.iter().find(|record| is_own(record));
        Ok(own.or(records.first()).map(|record| identity_of(&record.serial, call)))
    }
}

fn identity_of(serial: &str, call: CallContext<'_>) -> Identity {
    match serial == call.volume.serial.as_str() {
        true => Identity::Volume,
        false => Identity::Other,
    }
}
