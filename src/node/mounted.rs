//! The owner of the mount at a volume's path, from the mount table and the device behind the mount. A stale link
//! or a disk that does not respond therefore does not keep a mount in place.

use super::Result;
use super::observe::{CallContext, quick};
use super::path::PathState;
use super::plan::{self, Identity, MountOwner, PlanError};
use super::staged::StagedRecords;
use crate::linux::{Device, Entry, FlushOutcome, Mount};

#[derive(Debug)]
pub(super) enum OwnedMount {
    Device(Box<Device>),
    /// A mount whose filesystem can no longer write. With the volume's device if the filesystem has shut down, without
    /// if the device was removed.
    Dead(Option<Box<Device>>),
}

/// Determines whether the mount at the path may be removed.
///
/// # Errors
/// The mount belongs to another disk or is not the driver's, or its device cannot be identified now.
pub(super) async fn identify(
    staged: &StagedRecords,
    path_state: &PathState,
    mount: &Mount,
    call: CallContext<'_>,
) -> Result<OwnedMount> {
    let device = device_behind(path_state, mount, call).await?;
    let identity = match &device {
        Some(device) => staged.identify(device, call).await?,
        None => Identity::Other,
    };
    let in_use = is_in_use(call, device.as_ref(), identity, path_state).await;
    let owner = plan::mount_owner(path_state, mount, device.as_ref(), identity, in_use);
    match (owner, device) {
        (MountOwner::Dead, device) => {
            let own = device.filter(|_| identity == Identity::Volume);
            Ok(OwnedMount::Dead(own.map(Box::new)))
        }
        (MountOwner::Volume, Some(device)) => Ok(OwnedMount::Device(Box::new(device))),
        (MountOwner::Unidentified, Some(device)) => Err(call.unidentified(device)),
        (owner, device) => {
            let other = device.filter(|_| owner == MountOwner::OtherDisk);
            Err(call.refused()(PlanError::path_in_use(
                path_state,
                mount,
                other.as_ref(),
            )))
        }
    }
}

/// The device, or the parent device of the partition, that the mount is from: by name if the number agrees, which
/// reads one device, or by name or number among all devices.
async fn device_behind(path_state: &PathState, mount: &Mount, call: CallContext<'_>) -> Result<Option<Device>> {
    let Some(name) = plan::device_name(path_state.entry, mount) else {
        return Ok(None);
    };
    let number = match path_state.entry {
        Entry::BlockDevice(number) => Some(number),
        // The number of a btrfs mount is not that of a block device.
        _ if mount.kind == "btrfs" => None,
        _ => Some(mount.number),
    };
    let device = call.wrap(call.host.device(quick(), name)).await?;
    if let Some(device) = device.filter(|device| number.is_none_or(|of| of == device.number)) {
        return Ok(Some(device));
    }
    let devices = call.wrap(call.host.devices(quick())).await?;
    Ok(devices.into_iter().find(|device| {
        Some(device.number) == number
            || device.name == name
            || device.partitions.iter().any(|partition| partition.name == name)
    }))
}

/// Whether the kernel uses the device of another disk. A bind mount of a device node does not use the device. A
/// device whose state is unknown may be in use.
async fn is_in_use(call: CallContext<'_>, device: Option<&Device>, identity: Identity, path_state: &PathState) -> bool {
    match (device, identity, path_state.entry) {
        (None, _, _) | (_, _, Entry::BlockDevice(_)) => true,
        (_, Identity::Volume | Identity::Unknown, _) => true,
        (Some(device), Identity::Other, _) => {
            let flushed = call.host.flush_if_free(quick(), device).await;
            !matches!(flushed, Ok(FlushOutcome::Flushed))
        }
    }
}
