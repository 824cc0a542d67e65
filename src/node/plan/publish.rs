//! Plans publishing.

use std::path::Path;

use super::common::{
    access_name, ensure_directory, incompatible, mount_points, path_in_use, wrong_path_type,
};
use super::mount_option::{check_labels, missing_options};
use super::{Access, PathState, Plan, PlanError, RequestedAccess, Step};
use crate::host::{Device, Entry, Mount};
use crate::model::{Filesystem, MountFlags};

/// The state of the host before publishing.
#[derive(Debug)]
pub(in crate::node) struct PublishObservation {
    pub(in crate::node) device: Device,
    pub(in crate::node) staging: PathState,
    pub(in crate::node) target: PathState,
    /// Mounts of the filesystem on a volume that is published as a block device.
    pub(in crate::node) filesystem_mounts: Vec<Mount>,
    /// Mounts at other target paths.
    pub(in crate::node) other_targets: Vec<Mount>,
}

pub(in crate::node) fn publish(
    requested: RequestedAccess<'_>,
    single_target: bool,
    observed: &PublishObservation,
) -> Plan {
    let steps = match requested.access {
        Access::Block => publish_block(requested.read_only, observed)?,
        Access::Mount { filesystem, flags } => {
            publish_mount(*filesystem, flags, requested.read_only, observed)?
        }
    };
    // A retry for an existing target succeeds: kubelet bind-mounts the target at further paths.
    if single_target && observed.target.mount.is_none() && !observed.other_targets.is_empty() {
        return Err(PlanError::AlreadyPublished {
            paths: mount_points(&observed.other_targets),
        });
    }
    Ok(steps)
}

fn publish_mount(
    filesystem: Filesystem,
    flags: &MountFlags,
    read_only: bool,
    observed: &PublishObservation,
) -> Plan {
    let staging = observed.staging.path.clone();
    let staged = observed.staging.mount.as_ref();
    let Some(staged) = staged.filter(|mount| mount.is_of(&observed.device)) else {
        return Err(PlanError::NotStaged { staging });
    };
    if staged.kind != filesystem.as_str() {
        let found = format!("as {}", staged.kind);
        return Err(incompatible(&observed.staging, found, filesystem.as_str()));
    }
    if staged.is_read_only() && !read_only {
        return Err(PlanError::StagedReadOnly { staging });
    }
    check_labels(flags, staged, &observed.staging)?;
    let missing = missing_options(flags, staged, &observed.staging)?;
    let target = observed.target.path.clone();
    if let Some(mount) = &observed.target.mount {
        if !mount.is_of(&observed.device) || !mount.is_whole() {
            return Err(path_in_use(&observed.target, mount));
        }
        let missing = missing_options(flags, mount, &observed.target)?;
        let mut steps = restrict(&target, missing);
        steps.extend(publish_again(&observed.target, mount, read_only)?);
        return Ok(steps);
    }
    let mut steps = ensure_directory(&observed.target)?;
    steps.push(Step::Bind {
        source: staging,
        target: target.clone(),
    });
    steps.extend(restrict(&target, missing));
    if read_only {
        steps.push(Step::RemountReadOnly(target));
    }
    Ok(steps)
}

/// Also restricts an existing mount: an earlier call may have been interrupted before this step.
fn restrict(target: &Path, flags: MountFlags) -> Vec<Step> {
    if flags.is_empty() {
        return Vec::new();
    }
    let target = target.to_owned();
    vec![Step::Restrict { target, flags }]
}

fn publish_block(read_only: bool, observed: &PublishObservation) -> Plan {
    let device = &observed.device;
    let mut steps = Vec::new();
    // A read-only bind mount does not prevent writes through a device node, so the device itself is set read-only
    // before it is published. The flag applies to all targets. The options of the mounts are not compared: kubelet
    // bind-mounts each target at a further path, always writable.
    if device.read_only != read_only {
        if let Some(other) = observed.other_targets.first() {
            return Err(PlanError::MixedAccess {
                found: access_name(device.read_only),
                path: other.point.display().to_string(),
            });
        }
        steps.push(Step::SetDeviceReadOnly(read_only));
    }
    let target = observed.target.path.clone();
    if let Some(mount) = &observed.target.mount {
        if observed.target.entry != Entry::BlockDevice(device.number) {
            return Err(path_in_use(&observed.target, mount));
        }
        steps.extend(publish_again(&observed.target, mount, read_only)?);
        return Ok(steps);
    }
    // Writes to the device would corrupt a mounted filesystem.
    if !observed.filesystem_mounts.is_empty() {
        return Err(PlanError::MountedElsewhere {
            device: device.to_string(),
            paths: mount_points(&observed.filesystem_mounts),
        });
    }
    match observed.target.entry {
        Entry::File => {}
        Entry::Missing => steps.push(Step::MakeFile(target.clone())),
        other => return Err(wrong_path_type(&observed.target, other, "a file")),
    }
    steps.push(Step::BindDevice(target.clone()));
    if read_only {
        steps.push(Step::RemountReadOnly(target));
    }
    Ok(steps)
}

/// The volume is already mounted at the target. An earlier read-only call may have been interrupted before the remount,
/// which is completed. A read-only target never becomes writable.
fn publish_again(path_state: &PathState, mount: &Mount, read_only: bool) -> Plan {
    match (mount.is_read_only(), read_only) {
        (true, true) | (false, false) => Ok(Vec::new()),
        (false, true) => Ok(vec![Step::RemountReadOnly(path_state.path.clone())]),
        (true, false) => Err(incompatible(
            path_state,
            access_name(true).to_owned(),
            access_name(false),
        )),
    }
}
