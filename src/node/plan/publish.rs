//! Publishing.

use std::path::Path;

use super::common::{bad, directory, incompatible, occupied, places, word};
use super::option::{missing, same_labels};
use super::{Access, PathState, Plan, Refusal, Step, Wanted};
use crate::host::{Device, Entry, Mount};
use crate::model::{Filesystem, MountFlags};

/// What publishing saw.
#[derive(Debug)]
pub(in crate::node) struct PublishSeen {
    pub(in crate::node) device: Device,
    pub(in crate::node) staging: PathState,
    pub(in crate::node) target: PathState,
    /// Where the filesystem on it is mounted, if it is wanted as a device.
    pub(in crate::node) staged: Vec<Mount>,
    /// Other targets that the volume is published at.
    pub(in crate::node) others: Vec<Mount>,
}

/// Publishing.
pub(in crate::node) fn publish(
    wanted: Wanted<'_>,
    single_target: bool,
    seen: &PublishSeen,
) -> Plan {
    let steps = match wanted.access {
        Access::Block => publish_block(wanted.read_only, seen)?,
        Access::Mount { filesystem, flags } => {
            publish_mount(*filesystem, flags, wanted.read_only, seen)?
        }
    };
    // What is at the target already is not refused: orchestrators bind it to further places of their own.
    if single_target && seen.target.mount.is_none() && !seen.others.is_empty() {
        return Err(Refusal::SingleTarget {
            at: places(&seen.others),
        });
    }
    Ok(steps)
}

fn publish_mount(
    filesystem: Filesystem,
    flags: &MountFlags,
    read_only: bool,
    seen: &PublishSeen,
) -> Plan {
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
    same_labels(flags, staged, &seen.staging)?;
    let stricter = missing(flags, staged, &seen.staging)?;
    let target = seen.target.path.clone();
    if let Some(mount) = &seen.target.mount {
        if !mount.is_of(&seen.device) || !mount.is_whole() {
            return Err(occupied(&seen.target, mount));
        }
        let stricter = missing(flags, mount, &seen.target)?;
        let mut steps = restrict(&target, stricter);
        steps.extend(there_already(&seen.target, mount, read_only)?);
        return Ok(steps);
    }
    let mut steps = directory(&seen.target)?;
    steps.push(Step::Bind {
        source: staging,
        target: target.clone(),
    });
    steps.extend(restrict(&target, stricter));
    if read_only {
        steps.push(Step::RemountReadOnly(target));
    }
    Ok(steps)
}

/// An earlier call may have ended before this step, and a stricter mount is a safe one.
fn restrict(target: &Path, flags: MountFlags) -> Vec<Step> {
    if flags.is_empty() {
        return Vec::new();
    }
    let target = target.to_owned();
    vec![Step::Restrict { target, flags }]
}

fn publish_block(read_only: bool, seen: &PublishSeen) -> Plan {
    let device = &seen.device;
    let mut steps = Vec::new();
    // A read-only mount does not keep anybody from writing to a device through its node, so the
    // device itself is made read-only, before it is bound anywhere; that cannot differ between targets.
    // What the mounts say does not count: kubelet binds each target to a further place of its own, always writable.
    if device.read_only != read_only {
        if let Some(other) = seen.others.first() {
            return Err(Refusal::MixedAccess {
                found: word(device.read_only),
                at: other.point.display().to_string(),
            });
        }
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
    // What is written past a mounted filesystem destroys it.
    if !seen.staged.is_empty() {
        return Err(Refusal::MountedElsewhere {
            device: device.to_string(),
            at: places(&seen.staged),
        });
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
fn there_already(path_state: &PathState, mount: &Mount, read_only: bool) -> Plan {
    match (mount.is_read_only(), read_only) {
        (true, true) | (false, false) => Ok(Vec::new()),
        (false, true) => Ok(vec![Step::RemountReadOnly(path_state.path.clone())]),
        (true, false) => Err(incompatible(path_state, word(true).to_owned(), word(false))),
    }
}
