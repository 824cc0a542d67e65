//! Checks that a device is still the one that a call has chosen.

use super::Result;
use super::observe::{CallContext, quick};
use crate::linux::{Device, DeviceIncarnation};

/// Checks that the name of the device still refers to the same incarnation.
///
/// # Errors
/// [`HostError::DeviceChanged`](crate::linux::HostError::DeviceChanged) if the device was removed or replaced.
pub(super) async fn verify(call: CallContext<'_>, device: &Device) -> Result<()> {
    let now = call.wrap(call.host.device(quick(), device.whole_name())).await?;
    let reason = match now.and_then(|now| part(now, device)) {
        Some(now) if now.is_same_incarnation(device) => return Ok(()),
        Some(now) => format!("it is now {now} with {}", now.identity()),
        None => "it was removed".to_owned(),
    };
    Err(call.device_changed(device, reason))
}

/// Whether the device, a whole one, was removed after it was chosen. The device of a disk that was detached while in
/// use disappears with its last user. Its data can no longer be written.
pub(super) async fn is_removed(call: CallContext<'_>, device: &Device) -> Result<bool> {
    let now = call.wrap(call.host.device(quick(), &device.name)).await?;
    let same = |now: Device| {
        now.number == device.number && now.sequence == device.sequence && now.backing_file == device.backing_file
    };
    let removed = !now.is_some_and(same);
    if removed {
        tracing::warn!(disk.id = %call.id(), %device, "the device was removed; unwritten data is lost");
    }
    Ok(removed)
}

/// The incarnation of the device; `None` for a loop device on a kernel without `diskseq` (before 5.15).
pub(super) async fn incarnation(call: CallContext<'_>, device: &Device) -> Result<Option<DeviceIncarnation>> {
    let boot = call.wrap(call.host.boot_id(quick())).await?;
    Ok(device.incarnation(&boot))
}

/// The device now, or the partition of it that was chosen; `None` if the partition does not exist.
fn part(now: Device, chosen: &Device) -> Option<Device> {
    if chosen.partition_of.is_none() {
        return Some(now);
    }
    let mut partitions = now.partitions.iter();
    let partition = partitions.find(|partition| partition.name == chosen.name)?;
    Some(now.as_partition(partition))
}
