//! From what is seen to what is done: pure functions, so that every promise about data is one line
//! of a table of tests.

use std::path::PathBuf;

use super::observe::Spot;
use super::request::Access;
use crate::host::filesystem::{SLACK, grows_unmounted};
use crate::host::{Content, Device, Entry, Mount};
use crate::model::{Bytes, Filesystem, MountFlags};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Let the kernel write to the device, or not.
    SetDeviceReadOnly(bool),
    /// Make a filesystem on a device that is proven blank.
    Format(Filesystem),
    /// Check an unmounted filesystem, repairing what is safe to repair.
    Check(Filesystem),
    /// Grow an unmounted filesystem.
    GrowUnmounted(Filesystem),
    /// Make a directory to mount on.
    MakeDirectory(PathBuf),
    /// Make a file to bind a device onto.
    MakeFile(PathBuf),
    /// Mount the device.
    Mount {
        /// Where.
        target: PathBuf,
        /// Its filesystem.
        filesystem: Filesystem,
        /// Options.
        flags: MountFlags,
        /// Whether read-only.
        read_only: bool,
    },
    /// Grow a mounted filesystem.
    GrowMounted {
        /// Its type.
        filesystem: Filesystem,
        /// Where it is mounted writable.
        at: PathBuf,
    },
    /// Show a directory at another place.
    Bind {
        /// The directory.
        source: PathBuf,
        /// The other place.
        target: PathBuf,
    },
    /// Show the device's node at a place.
    BindDevice(PathBuf),
    /// Make the mount at a place read-only.
    RemountReadOnly(PathBuf),
    /// Remove the mount at a place.
    Unmount(PathBuf),
    /// Remove an empty directory or file.
    Remove(PathBuf),
}

/// Why nothing is done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The disk has another filesystem.
    #[error("{device} has {found}, but {wanted} was asked for")]
    WrongFilesystem {
        /// The device.
        device: String,
        /// What it has.
        found: Filesystem,
        /// What was asked for.
        wanted: Filesystem,
    },
    /// The disk has something that is not ours.
    #[error("{device} is neither blank nor has it {wanted}: it holds {found}")]
    ForeignData {
        /// The device.
        device: String,
        /// What it holds.
        found: String,
        /// What was asked for.
        wanted: Filesystem,
    },
    /// Partitions or devices are built on it.
    #[error("{device} is in use by {by}")]
    Held {
        /// The device.
        device: String,
        /// By what.
        by: String,
    },
    /// A filesystem must be made, and nothing may be written.
    #[error("{device} is blank, and read-only use never formats a disk")]
    BlankReadOnly {
        /// The device.
        device: String,
    },
    /// The volume is mounted where it should not be.
    #[error("{device} is mounted at {at}")]
    MountedElsewhere {
        /// The device.
        device: String,
        /// Where.
        at: String,
    },
    /// Something else is mounted at the path.
    #[error("{source_name} is mounted at {}, not this volume", path.display())]
    Occupied {
        /// The path.
        path: PathBuf,
        /// What is mounted there.
        source_name: String,
    },
    /// The path is not of the needed kind.
    #[error("{} is {found}, not {wanted}", path.display())]
    BadTarget {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// It is there already, in another way.
    #[error("it is already at {} {found}, {wanted} was asked for", path.display())]
    Incompatible {
        /// The path.
        path: PathBuf,
        /// How it is there.
        found: String,
        /// What was asked for.
        wanted: String,
    },
    /// It must be staged first.
    #[error("it is not staged at {}", staging.display())]
    NotStaged {
        /// The staging path.
        staging: PathBuf,
    },
    /// It cannot be published writable.
    #[error("it is staged read-only at {}", staging.display())]
    StagedReadOnly {
        /// The staging path.
        staging: PathBuf,
    },
    /// Only one target is allowed.
    #[error("its access mode allows one target, and it is published at {at}")]
    SingleTarget {
        /// The other one.
        at: String,
    },
    /// A device cannot be read-only and writable at once.
    #[error("the device is published {found} at {at}, and a device is one or the other as a whole")]
    MixedAccess {
        /// How.
        found: &'static str,
        /// Where.
        at: String,
    },
    /// It grows only where it is mounted writable.
    #[error("{device} is mounted read-only: its filesystem cannot grow")]
    GrowReadOnly {
        /// The device.
        device: String,
    },
}

type Plan = Result<Vec<Step>, Refusal>;

/// How a volume is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) access: &'a Access,
    pub(super) read_only: bool,
}

/// What staging saw.
#[derive(Debug)]
pub(super) struct StageSeen {
    pub(super) device: Device,
    pub(super) staging: Spot,
    /// Mounts of the device's filesystem at other places.
    pub(super) elsewhere: Vec<Mount>,
    /// Looked at only where nobody uses the device.
    pub(super) content: Option<Content>,
    /// The size that the superblock of a mounted filesystem states.
    pub(super) mounted_size: Option<Bytes>,
}

/// Staging.
pub(super) fn stage(wanted: Wanted<'_>, seen: &StageSeen) -> Plan {
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
            steps.push(Step::Check(filesystem));
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

/// What publishing saw.
#[derive(Debug)]
pub(super) struct PublishSeen {
    pub(super) device: Device,
    pub(super) staging: Spot,
    pub(super) target: Spot,
    /// Other targets that the volume is published at.
    pub(super) others: Vec<Mount>,
}

/// Publishing.
pub(super) fn publish(wanted: Wanted<'_>, single_target: bool, seen: &PublishSeen) -> Plan {
    let steps = match wanted.access {
        Access::Block => publish_block(wanted.read_only, seen)?,
        Access::Mount { filesystem, .. } => publish_mount(*filesystem, wanted.read_only, seen)?,
    };
    if single_target && !seen.others.is_empty() {
        return Err(Refusal::SingleTarget {
            at: places(&seen.others),
        });
    }
    Ok(steps)
}

fn publish_mount(filesystem: Filesystem, read_only: bool, seen: &PublishSeen) -> Plan {
    let staging = seen.staging.path.clone();
    let staged = seen.staging.mount.as_ref();
    let Some(staged) = staged.filter(|mount| mount.is_of(&seen.device)) else {
        return Err(Refusal::NotStaged { staging });
    };
    if staged.kind != filesystem.as_str() {
        let found = format!("as {}", staged.kind);
        return Err(incompatible(&seen.staging, found, filesystem.as_str()));
    }
    if staged.is_read_only() && !read_only {
        return Err(Refusal::StagedReadOnly { staging });
    }
    let target = seen.target.path.clone();
    if let Some(mount) = &seen.target.mount {
        if !mount.is_of(&seen.device) || !mount.is_whole() {
            return Err(occupied(&seen.target, mount));
        }
        return there_already(&seen.target, mount, read_only);
    }
    let mut steps = directory(&seen.target)?;
    steps.push(Step::Bind {
        source: staging,
        target: target.clone(),
    });
    if read_only {
        steps.push(Step::RemountReadOnly(target));
    }
    Ok(steps)
}

fn publish_block(read_only: bool, seen: &PublishSeen) -> Plan {
    let device = &seen.device;
    // A read-only mount does not keep anybody from writing to a device through its node, so the
    // device itself is made read-only; that cannot differ between targets.
    if let Some(other) = seen.others.iter().find(|m| m.is_read_only() != read_only) {
        return Err(Refusal::MixedAccess {
            found: word(other.is_read_only()),
            at: other.point.display().to_string(),
        });
    }
    let mut steps = Vec::new();
    if device.read_only != read_only {
        steps.push(Step::SetDeviceReadOnly(read_only));
    }
    let target = seen.target.path.clone();
    if let Some(mount) = &seen.target.mount {
        if seen.target.entry != Entry::Block(device.number) {
            return Err(occupied(&seen.target, mount));
        }
        steps.extend(there_already(&seen.target, mount, read_only)?);
        return Ok(steps);
    }
    match seen.target.entry {
        Entry::File => {}
        Entry::Missing => steps.push(Step::MakeFile(target.clone())),
        other => return Err(bad(&seen.target, other, "a file")),
    }
    steps.push(Step::BindDevice(target.clone()));
    if read_only {
        steps.push(Step::RemountReadOnly(target));
    }
    Ok(steps)
}

/// It is at the target. An earlier read-only call may have ended before its last step, and making
/// the mount read-only is safe; the other way round is another wish.
fn there_already(spot: &Spot, mount: &Mount, read_only: bool) -> Plan {
    match (mount.is_read_only(), read_only) {
        (true, true) | (false, false) => Ok(Vec::new()),
        (false, true) => Ok(vec![Step::RemountReadOnly(spot.path.clone())]),
        (true, false) => Err(incompatible(spot, word(true).to_owned(), word(false))),
    }
}

/// What leaving a path saw.
#[derive(Debug)]
pub(super) struct LeaveSeen {
    /// The volume's device, if it is there.
    pub(super) device: Option<Device>,
    pub(super) spot: Spot,
    /// Where else it is mounted; staging goes last.
    pub(super) others: Vec<Mount>,
}

/// Unstaging.
pub(super) fn unstage(seen: &LeaveSeen) -> Plan {
    if seen.spot.mount.is_some() && !seen.others.is_empty() {
        let device = seen.device.as_ref().map(ToString::to_string);
        return Err(Refusal::MountedElsewhere {
            device: device.unwrap_or_default(),
            at: places(&seen.others),
        });
    }
    leave(seen)
}

/// Unpublishing.
pub(super) fn unpublish(seen: &LeaveSeen) -> Plan {
    let mut steps = leave(seen)?;
    let is_last = seen.others.is_empty() && matches!(seen.spot.entry, Entry::Block(_));
    if is_last && seen.device.as_ref().is_some_and(|device| device.read_only) {
        steps.insert(steps.len().min(1), Step::SetDeviceReadOnly(false));
    }
    Ok(steps)
}

fn leave(seen: &LeaveSeen) -> Plan {
    let spot = &seen.spot;
    let path = spot.path.clone();
    let Some(mount) = &spot.mount else {
        return match spot.entry {
            Entry::Missing => Ok(Vec::new()),
            Entry::Directory | Entry::File => Ok(vec![Step::Remove(path)]),
            other => Err(bad(spot, other, "a directory or a file")),
        };
    };
    let is_ours = match (&seen.device, spot.entry) {
        (Some(device), Entry::Block(number)) => number == device.number,
        (Some(device), _) => mount.is_of(device),
        // The device is gone, or its serial is not the id's: at least it must be a disk's.
        (None, Entry::Block(_)) => true,
        (None, _) => mount.number.major != 0 || mount.kind == "btrfs",
    };
    if is_ours {
        Ok(vec![Step::Unmount(path.clone()), Step::Remove(path)])
    } else {
        Err(occupied(spot, mount))
    }
}

/// Growing a mounted filesystem; `mounts` are all mounts of the device's filesystem.
pub(super) fn expand(device: &Device, mounts: &[Mount], stated: Option<Bytes>) -> Plan {
    if !is_small(stated, device) && stated.is_some() {
        return Ok(Vec::new());
    }
    let writable = mounts.iter().find(|m| m.is_whole() && !m.is_read_only());
    let filesystem = writable.and_then(|mount| mount.kind.parse().ok());
    match (writable, filesystem) {
        (Some(mount), Some(filesystem)) => Ok(vec![Step::GrowMounted {
            filesystem,
            at: mount.point.clone(),
        }]),
        _ => Err(Refusal::GrowReadOnly {
            device: device.to_string(),
        }),
    }
}

/// Whether the filesystem leaves so much of the device unused that it should grow.
fn is_small(stated: Option<Bytes>, device: &Device) -> bool {
    stated.is_some_and(|size| device.size.0.saturating_sub(size.0) > SLACK.0)
}

fn directory(spot: &Spot) -> Plan {
    match spot.entry {
        Entry::Directory => Ok(Vec::new()),
        Entry::Missing => Ok(vec![Step::MakeDirectory(spot.path.clone())]),
        other => Err(bad(spot, other, "a directory")),
    }
}

fn bad(spot: &Spot, entry: Entry, wanted: &'static str) -> Refusal {
    Refusal::BadTarget {
        path: spot.path.clone(),
        found: match entry {
            Entry::Missing => "missing",
            Entry::Directory => "a directory",
            Entry::File => "a file",
            Entry::Block(_) => "a block device",
            Entry::Symlink => "a symlink",
            Entry::Other => "a special file",
        },
        wanted,
    }
}

fn incompatible(spot: &Spot, found: String, wanted: &str) -> Refusal {
    Refusal::Incompatible {
        path: spot.path.clone(),
        found,
        wanted: wanted.to_owned(),
    }
}

fn occupied(spot: &Spot, mount: &Mount) -> Refusal {
    Refusal::Occupied {
        path: spot.path.clone(),
        source_name: format!("{} ({})", mount.source.display(), mount.kind),
    }
}

fn foreign(device: &Device, what: &str, wanted: Filesystem) -> Refusal {
    Refusal::ForeignData {
        device: device.to_string(),
        found: what.to_owned(),
        wanted,
    }
}

fn places(mounts: &[Mount]) -> String {
    let points: Vec<String> = mounts
        .iter()
        .map(|m| m.point.display().to_string())
        .collect();
    points.join(", ")
}

fn word(read_only: bool) -> &'static str {
    if read_only { "read-only" } else { "writable" }
}
