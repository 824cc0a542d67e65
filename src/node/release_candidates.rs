//! The devices that may be a volume's disk, for unstage. A contradiction between links and serials does not
//! matter here: every device that may be the disk must be free. But a device that cannot be identified never counts
//! as the absence of the disk, which would be detached while its filesystem is mounted.

use super::Result;
use super::observe::{CallContext, Observer, quick};
use super::plan::Identity;
use super::staged::StagedRecords;
use crate::linux::{Device, Link};

/// All devices that are the volume's. Empty if no device of the node can be the disk.
///
/// # Errors
/// `DEVICE_UNIDENTIFIED` if none is the volume's, but one may be: it has not reported its serial, or udev linked it to
/// the serial and no other volume is recorded for it.
pub(super) async fn release_candidates(
    observer: &Observer,
    staged: &StagedRecords,
    call: CallContext<'_>,
) -> Result<Vec<Device>> {
    let found = observer.search(call).await?;
    let mut possible = found.devices;
    for name in &found.pending {
        if possible.iter().all(|device| device.name != *name) {
            possible.extend(call.wrap(call.host.device(quick(), name)).await?);
        }
    }
    let mut devices = Vec::new();
    let mut unidentified = Vec::new();
    for device in possible {
        match staged.identify(&device, call).await? {
            Identity::Volume => devices.push(device),
            Identity::Unknown => unidentified.push(device.to_string()),
            Identity::Other if is_linked(&device, &found.by_id) => {
                // A stale link may point to a disk that was staged for another volume.
                if staged.recorded(&device, call).await?.is_none() {
                    unidentified.push(device.to_string());
                }
            }
            Identity::Other => {}
        }
    }
    if devices.is_empty() && unidentified.is_empty() {
        // A disk that reports no serial any more, after it was staged.
        devices.extend(staged.staged_device(call).await?);
    }
    if devices.is_empty() && !unidentified.is_empty() {
        return Err(call.unidentified(unidentified.join(", ")));
    }
    Ok(devices)
}

/// Whether a link with the disk's serial points to a device without a serial.
fn is_linked(device: &Device, links: &[Link]) -> bool {
    let is_target = |link: &Link| link.target_name() == Some(device.name.as_str());
    device.serial.is_none() && links.iter().any(is_target)
}
