//! The devices that may be a volume's disk, for unstage. A contradiction between links and serials does not
//! matter here: every device that may be the disk must be free. But a device that cannot be identified is never taken as
//! the absence of the disk, which would be detached while its filesystem is mounted.

use std::path::PathBuf;
use std::sync::Arc;

use super::identify::Identifier;
use super::observe::{CallContext, quick};
use super::plan::Identity;
use super::{Error, Result};
use crate::host::{Candidates, Device, Host, Link};

#[derive(Debug, Clone)]
pub(super) struct ReleaseCandidates {
    pub(super) host: Arc<dyn Host>,
    pub(super) identifier: Identifier,
    /// The device directory of the fake cloud.
    pub(super) device_dir: Option<PathBuf>,
}

impl ReleaseCandidates {
    /// All devices that are the volume's. Empty if no device of the node can be the disk.
    ///
    /// # Errors
    /// [`Error::DeviceUnidentified`] if none is the volume's, but one may be: it has not reported its serial, or udev
    /// linked it to the serial and no other volume is recorded for it.
    pub(super) async fn list(&self, call: CallContext<'_>) -> Result<Vec<Device>> {
        let (serial, directory) = (&call.volume.serial, self.device_dir.as_deref());
        let found = self.host.search(quick(), serial, directory).await;
        let found = found.map_err(call.failed())?;
        let mut devices = Vec::new();
        let mut unidentified = Vec::new();
        for device in self.possible(&found, call).await? {
            match self.identifier.identify(&device, call).await? {
                Identity::Volume => devices.push(device),
                Identity::Unknown => unidentified.push(device.to_string()),
                Identity::Other if is_linked(&device, &found.by_id) => {
                    // A stale link may point to a disk that was staged for another volume.
                    if self.identifier.recorded(&device, call).await?.is_none() {
                        unidentified.push(device.to_string());
                    }
                }
                Identity::Other => {}
            }
        }
        if devices.is_empty() && unidentified.is_empty() {
            // A disk that reports no serial any more, after it was staged.
            devices.extend(self.identifier.staged.staged_device(call).await?);
        }
        if devices.is_empty() && !unidentified.is_empty() {
            return Err(Error::DeviceUnidentified {
                volume: call.id().clone(),
                operation: call.operation,
                devices: unidentified.join(", "),
            });
        }
        Ok(devices)
    }

    async fn possible(&self, found: &Candidates, call: CallContext<'_>) -> Result<Vec<Device>> {
        let mut possible = found.devices.clone();
        for name in &found.pending {
            if possible.iter().any(|device| device.name == *name) {
                continue;
            }
            let device = self.host.device(quick(), name).await;
            possible.extend(device.map_err(call.failed())?);
        }
        Ok(possible)
    }
}

/// Whether a link with the disk's serial points to a device without a serial.
fn is_linked(device: &Device, links: &[Link]) -> bool {
    let is_target = |link: &Link| link.target_name() == Some(device.name.as_str());
    device.serial.is_none() && links.iter().any(is_target)
}
