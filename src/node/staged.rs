//! What the node remembers of a staged volume, for what nothing else tells: that an attached disk is a
//! volume also while no pod uses it, and in which appearance of its device it was mounted. What is
//! mounted where is never read from here.

use serde::{Deserialize, Serialize};

use super::observe::{Quick, quick};
use super::request::Volume;
use super::{Node, Result};
use crate::base::chain::chain;
use crate::host::{Appearance, Device};

/// The kind of these records; their key is the volume's id.
const KIND: &str = "volume";

/// A staged volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Staged {
    /// The serial of its device.
    pub(super) serial: String,
    /// The appearance of its device; none on kernels that do not count them.
    pub(super) appearance: Option<Appearance>,
}

impl Node {
    /// Notes that a volume is about to be staged. A node that cannot keep this stages all the same.
    pub(super) async fn note_staged(&self, volume: &Volume, device: &Device) {
        let record = Staged {
            serial: volume.serial.to_string(),
            appearance: self.appears_as(device).await,
        };
        let key = volume.id.as_str();
        if let Err(error) = self.records.put(quick(), KIND, key, &record).await {
            let error = chain(&error);
            tracing::warn!(disk.id = %volume.id, error, "the volume is staged without a record");
        }
    }

    /// Forgets a volume that is not staged any more.
    pub(super) async fn forget_staged(&self, volume: &Volume) {
        if let Err(error) = self.records.remove(quick(), KIND, volume.id.as_str()).await {
            let error = chain(&error);
            tracing::warn!(disk.id = %volume.id, error, "the record of the volume stays");
        }
    }

    /// The record of a volume; one that cannot be read says nothing.
    pub(super) async fn staged(&self, volume: &str) -> Option<Staged> {
        match self.records.get(quick(), KIND, volume).await {
            Ok(record) => record,
            Err(error) => {
                tracing::warn!(
                    disk.id = volume,
                    error = chain(&error),
                    "no record can be read"
                );
                None
            }
        }
    }

    /// The records of all volumes.
    pub(super) async fn all_staged(&self) -> Vec<Staged> {
        let keys = self.records.keys(quick(), KIND).await;
        let keys = keys.unwrap_or_else(|error| {
            tracing::warn!(error = chain(&error), "the records cannot be listed");
            Vec::new()
        });
        let mut all = Vec::with_capacity(keys.len());
        for key in keys {
            all.extend(self.staged(&key).await);
        }
        all
    }

    /// Whether the device has left and come again, or another has come, since the volume was staged:
    /// what was mounted then is dead, under whatever name and number.
    pub(super) async fn has_left(&self, volume: &Volume, device: &Device) -> Result<bool> {
        let staged = self.staged(volume.id.as_str()).await;
        let then = staged.and_then(|staged| staged.appearance);
        let now = self.appears_as(device).await;
        Ok(then.zip(now).is_some_and(|(then, now)| then != now))
    }

    /// The device that the volume was staged on, if it has not left since and is not known to be another
    /// disk.
    pub(super) async fn staged_on(&self, volume: &Volume, at: Quick<'_>) -> Result<Option<Device>> {
        let Some(staged) = self.staged(volume.id.as_str()).await else {
            return Ok(None);
        };
        let boot = self.host.boot_id(quick()).await.map_err(at.failed())?;
        let devices = self.host.devices(quick()).await.map_err(at.failed())?;
        let is_it = |device: &Device| {
            let now = Appearance::of(&boot, device);
            let told = device.serial.as_ref();
            now.is_some()
                && now == staged.appearance
                && told.is_none_or(|serial| serial.as_str() == staged.serial)
        };
        Ok(devices.into_iter().find(is_it))
    }

    async fn appears_as(&self, device: &Device) -> Option<Appearance> {
        let boot = self.host.boot_id(quick()).await.ok()?;
        Appearance::of(&boot, device)
    }
}
