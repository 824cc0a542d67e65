//! Staging.

use super::common::{directory, foreign, incompatible, is_small, occupied, places, word};
use super::{Access, Plan, Refusal, Spot, Step, Wanted};
use crate::host::filesystem::{grows_unmounted, is_checked};
use crate::host::{Content, Device, Mount};
use crate::model::{Bytes, Filesystem, MountFlags};

/// What staging saw.
#[derive(Debug)]
pub(in crate::node) struct StageSeen {
    pub(in crate::node) device: Device,
    pub(in crate::node) staging: Spot,
    /// Mounts of the device's filesystem at other places.
    pub(in crate::node) elsewhere: Vec<Mount>,
    /// Looked at only where nobody uses the device.
    pub(in crate::node) content: Option<Content>,
    /// The size that the superblock of a mounted filesystem states.
    pub(in crate::node) mounted_size: Option<Bytes>,
}

/// Staging. A disk that was attached only to be read is locked before anything else is done with it: a
/// read-only mount alone would replay a journal.
pub(in crate::node) fn stage(wanted: Wanted<'_>, seen: &StageSeen) -> Plan {
    let steps = stage_unlocked(wanted, seen)?;
    let lock = wanted.locked && !seen.device.read_only;
    let lock = lock.then_some(Step::SetDeviceReadOnly(true));
    Ok(lock.into_iter().chain(steps).collect())
}

fn stage_unlocked(wanted: Wanted<'_>, seen: &StageSeen) -> Plan {
    match (wanted.access, &seen.staging.mount) {
        (Access::Block, None) => {
            free_of_mounts(seen)?;
            Ok(Vec::new())
        }
        (Access::Block, Some(mount)) => Err(if mount.is_of(&seen.device) {
            incompatible(&seen.staging, format!("as {}", mount.kind), "a device")
        } else {
            occupied(&seen.staging, mount)
        }),
        (Access::Mount { filesystem, .. }, Some(mount)) => {
            stage_again(*filesystem, wanted.read_only, mount, seen)
        }
        (Access::Mount { filesystem, flags }, None) => {
            free_of_mounts(seen)?;
            stage_new(*filesystem, flags, wanted.read_only, seen)
        }
    }
}

fn stage_again(filesystem: Filesystem, read_only: bool, mount: &Mount, seen: &StageSeen) -> Plan {
    if !mount.is_of(&seen.device) || !mount.is_whole() {
        return Err(occupied(&seen.staging, mount));
    }
    if mount.kind != filesystem.as_str() {
        let found = format!("as {}", mount.kind);
        return Err(incompatible(&seen.staging, found, filesystem.as_str()));
    }
    if mount.is_read_only() != read_only {
        let found = word(mount.is_read_only()).to_owned();
        return Err(incompatible(&seen.staging, found, word(read_only)));
    }
    // An earlier call may have ended between mounting and growing.
    let small = !grows_unmounted(filesystem) && is_small(seen.mounted_size, &seen.device);
    Ok(if small && !read_only {
        vec![Step::GrowMounted {
            filesystem,
            at: seen.staging.path.clone(),
        }]
    } else {
        Vec::new()
    })
}

fn stage_new(
    filesystem: Filesystem,
    flags: &MountFlags,
    read_only: bool,
    seen: &StageSeen,
) -> Plan {
    let device = &seen.device;
    let users: Vec<&str> = (device.partitions.iter().chain(&device.holders))
        .map(String::as_str)
        .collect();
    if !users.is_empty() {
        return Err(Refusal::Held {
            device: device.to_string(),
            by: users.join(", "),
        });
    }
    let mut steps = Vec::new();
    if device.read_only && !read_only {
        steps.push(Step::SetDeviceReadOnly(false));
    }
    let mut grow_mounted = false;
    match &seen.content {
        Some(Content::Blank) if read_only => {
            return Err(Refusal::BlankReadOnly {
                device: device.to_string(),
            });
        }
        Some(Content::Blank) => steps.push(Step::Format(filesystem)),
        Some(Content::Filesystem {
            filesystem: found, ..
        }) if *found != filesystem => {
            return Err(Refusal::WrongFilesystem {
                device: device.to_string(),
                found: *found,
                wanted: filesystem,
            });
        }
        // Nothing may be written: neither checked nor grown.
        Some(Content::Filesystem { .. }) if read_only => {}
        Some(Content::Filesystem { size, .. }) => {
            if is_checked(filesystem) {
                steps.push(Step::Check(filesystem));
            }
            if is_small(*size, device) {
                if grows_unmounted(filesystem) {
                    steps.push(Step::GrowUnmounted(filesystem));
                } else {
                    grow_mounted = true;
                }
            }
        }
        Some(Content::Foreign { what }) => return Err(foreign(device, what, filesystem)),
        None => return Err(foreign(device, "what nobody looked at", filesystem)),
    }
    let target = seen.staging.path.clone();
    steps.extend(directory(&seen.staging)?);
    steps.push(Step::Mount {
        target: target.clone(),
        filesystem,
        flags: flags.clone(),
        read_only,
    });
    if grow_mounted {
        steps.push(Step::GrowMounted {
            filesystem,
            at: target,
        });
    }
    Ok(steps)
}

fn free_of_mounts(seen: &StageSeen) -> Result<(), Refusal> {
    if seen.elsewhere.is_empty() {
        return Ok(());
    }
    Err(Refusal::MountedElsewhere {
        device: seen.device.to_string(),
        at: places(&seen.elsewhere),
    })
}
