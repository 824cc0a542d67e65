//! Staging.

use super::common::{directory, foreign, incompatible, is_small, occupied, places, word};
use super::option::same_labels;
use super::{Access, PathState, Plan, Refusal, Step, Wanted};
use crate::host::filesystem::{grows_unmounted, is_checked};
use crate::host::{Content, Device, Mount};
use crate::model::{Bytes, Filesystem, Fsck, MountFlags, Tuning};
use crate::node::journal::Journal;

/// What staging saw.
#[derive(Debug)]
pub(in crate::node) struct StageSeen {
    pub(in crate::node) device: Device,
    pub(in crate::node) staging: PathState,
    /// Mounts of the device's filesystem at other places.
    pub(in crate::node) elsewhere: Vec<Mount>,
    /// Looked at only where nobody uses the device.
    pub(in crate::node) content: Option<Content>,
    /// What is known of a mkfs that was begun.
    pub(in crate::node) journal: Journal,
    /// The size that the superblock of a mounted filesystem states.
    pub(in crate::node) mounted_size: Option<Bytes>,
    /// Whether a mounted ext filesystem may grow here.
    pub(in crate::node) ext_grows_mounted: bool,
}

impl StageSeen {
    /// Whether the filesystem is grown once it is mounted. That is cut off by nothing: the kernel writes each step
    /// of it to the journal. A resize2fs on an unmounted filesystem that is killed with its container leaves damage which
    /// `e2fsck -p` does not mend.
    fn grows_mounted(&self, filesystem: Filesystem) -> bool {
        self.ext_grows_mounted || !grows_unmounted(filesystem)
    }
}

/// Staging. A disk that was attached only to be read is locked before anything else is done with it: a
/// read-only mount alone would replay a journal.
pub(in crate::node) fn stage(wanted: Wanted<'_>, tuning: &Tuning, seen: &StageSeen) -> Plan {
    let steps = stage_unlocked(wanted, tuning, seen)?;
    let lock = wanted.locked && !seen.device.read_only;
    let lock = lock.then_some(Step::SetDeviceReadOnly(true));
    Ok(lock.into_iter().chain(steps).collect())
}

fn stage_unlocked(wanted: Wanted<'_>, tuning: &Tuning, seen: &StageSeen) -> Plan {
    match (wanted.access, &seen.staging.mount) {
        (Access::Block, None) => {
            free_of_mounts(seen)?;
            // From here on somebody else writes to it.
            Ok(forget(seen))
        }
        (Access::Block, Some(mount)) => Err(if mount.is_of(&seen.device) {
            incompatible(&seen.staging, format!("as {}", mount.kind), "a device")
        } else {
            occupied(&seen.staging, mount)
        }),
        (Access::Mount { filesystem, flags }, Some(mount)) => {
            same_labels(flags, mount, &seen.staging)?;
            stage_again(*filesystem, wanted.read_only, mount, seen)
        }
        (Access::Mount { filesystem, flags }, None) => {
            free_of_mounts(seen)?;
            stage_new(*filesystem, flags, wanted.read_only, tuning, seen)
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
    let small = seen.grows_mounted(filesystem) && is_small(seen.mounted_size, &seen.device);
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
    tuning: &Tuning,
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
    let format = || Step::Format {
        filesystem,
        tuning: tuning.clone(),
    };
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
        Some(Content::Blank) => steps.push(format()),
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
        Some(Content::Filesystem { .. }) if read_only => steps.extend(forget(seen)),
        Some(Content::Filesystem { size, .. }) => {
            // The record is older than the end of its mkfs.
            steps.extend(forget(seen));
            if is_checked(filesystem) && tuning.fsck != Fsck::None {
                steps.push(Step::Check(filesystem, tuning.fsck));
            }
            if is_small(*size, device) {
                if seen.grows_mounted(filesystem) {
                    grow_mounted = true;
                } else {
                    steps.push(Step::GrowUnmounted(filesystem, tuning.fsck));
                }
            }
        }
        Some(content @ (Content::Unfinished { .. } | Content::Unknown { .. })) => {
            half_made(content, filesystem, read_only, seen)?;
            steps.extend([Step::Wipe, format()]);
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

fn forget(seen: &StageSeen) -> Vec<Step> {
    match seen.journal {
        Journal::Nothing => Vec::new(),
        Journal::Ours | Journal::Stale { .. } => vec![Step::ForgetFormat],
    }
}

/// Whether a mkfs that was cut off is to be finished: only where the journal proves that it was ours, on a disk that had been blank.
fn half_made(
    content: &Content,
    wanted: Filesystem,
    read_only: bool,
    seen: &StageSeen,
) -> Result<(), Refusal> {
    let refused = |filesystem: &str, why: &str| Refusal::Unfinished {
        device: seen.device.to_string(),
        found: content.to_string(),
        why: format!("a mkfs.{filesystem} was cut off on it, and is not finished because {why}"),
    };
    match (&seen.journal, content) {
        (Journal::Ours, _) if read_only => Err(refused(
            wanted.as_str(),
            "read-only use never formats a disk",
        )),
        (Journal::Ours, _) => Ok(()),
        (Journal::Stale { filesystem, why }, _) => Err(refused(filesystem, why)),
        (Journal::Nothing, Content::Unfinished { filesystem }) => Err(refused(
            filesystem.as_str(),
            "no record of this node proves that the disk was blank before",
        )),
        (Journal::Nothing, _) => Err(foreign(&seen.device, &content.to_string(), wanted)),
    }
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
