//! Plans publishing.

use std::path::Path;

use super::common::{access_name, check_usable, ensure_directory};
use super::error::mount_points;
use super::{Access, PathState, Plan, PlanError, PublishRequest, Step};
use crate::linux::{Device, Entry, Mount};
use crate::model::{Failure, Filesystem, MountFlags};

#[derive(Debug)]
pub(in crate::node) struct PublishObservation {
    pub(in crate::node) device: Device,
    pub(in crate::node) staging: PathState,
    /// Whether the staged filesystem rejects writes after an error.
    pub(in crate::node) rejects_writes: bool,
    pub(in crate::node) target: PathState,
    /// Mounts of the filesystem on a volume that is published as a block device.
    pub(in crate::node) filesystem_mounts: Vec<Mount>,
    pub(in crate::node) other_targets: Vec<Mount>,
}

pub(in crate::node) fn publish(request: &PublishRequest, observed: &PublishObservation) -> Plan {
    let steps = match &request.access {
        Access::Block => publish_block(request.read_only, observed)?,
        Access::Mount { filesystem, flags } => publish_mount(*filesystem, flags, request.read_only, observed)?,
    };
    // A retry for an existing target succeeds: kubelet bind-mounts the target at further paths.
    if request.single_target && observed.target.mount.is_none() && !observed.other_targets.is_empty() {
        let paths = mount_points(&observed.other_targets);
        let message = format!("the access mode allows one target path, and the volume is already published at {paths}");
        return Err(PlanError::new(Failure::AccessModeConflict, message));
    }
    Ok(steps)
}

/// Restrictive options of a mount. Their opposites lack the prefix.
const RESTRICTIVE: [&str; 6] = ["nosuid", "nodev", "noexec", "noatime", "nodiratime", "nosymfollow"];

fn publish_mount(filesystem: Filesystem, flags: &MountFlags, read_only: bool, observed: &PublishObservation) -> Plan {
    let staging = observed.staging.path.clone();
    let staged = observed.staging.mount.as_ref();
    let Some(staged) = staged.filter(|mount| mount.is_of(&observed.device)) else {
        let message = format!("the volume is not staged at {}", staging.display());
        return Err(PlanError::new(Failure::NotStaged, message));
    };
    check_usable(
        &observed.staging,
        staged,
        filesystem,
        read_only,
        observed.rejects_writes,
    )?;
    if staged.is_read_only() && !read_only {
        let message = format!("the volume is staged read-only at {}", staging.display());
        return Err(PlanError::new(Failure::AccessModeConflict, message));
    }
    let missing = missing_options(flags, staged, &observed.staging)?;
    let target = observed.target.path.clone();
    if let Some(mount) = &observed.target.mount {
        if !mount.is_of(&observed.device) || !mount.is_whole() {
            return Err(PlanError::path_in_use(&observed.target, mount, None));
        }
        let missing = missing_options(flags, mount, &observed.target)?;
        let missing = missing.and(missing_read_only(&observed.target, mount, read_only)?);
        return Ok(restrict(&target, missing).into_iter().collect());
    }
    let mut steps = ensure_directory(&observed.target)?;
    steps.push(Step::Bind {
        source: staging,
        target: target.clone(),
    });
    steps.extend(restrict(&target, missing.and(read_only.then_some("ro"))));
    Ok(steps)
}

/// The requested restrictive options that the mount does not have. All other options belong to the filesystem; kubelet
/// passes the same ones to NodeStageVolume.
///
/// # Errors
/// A requested option contradicts one of the mount: a target is never less strict than the staging path.
fn missing_options(flags: &MountFlags, mount: &Mount, path_state: &PathState) -> Result<MountFlags, PlanError> {
    let mut missing = Vec::new();
    for restrictive in RESTRICTIVE {
        let opposite = restrictive.trim_start_matches("no");
        let last = flags.iter().rfind(|flag| [restrictive, opposite].contains(flag));
        let has = mount.has_option(restrictive);
        match last {
            Some(flag) if flag == restrictive && !has => missing.push(restrictive.to_owned()),
            Some(flag) if flag == opposite && has => {
                return Err(PlanError::incompatible(path_state, restrictive, opposite));
            }
            Some(_) | None => {}
        }
    }
    Ok(MountFlags::new(missing).expect("constants are valid options"))
}

/// Also restricts an existing mount: an earlier call may have been interrupted before this step.
fn restrict(target: &Path, flags: MountFlags) -> Option<Step> {
    let target = target.to_owned();
    (!flags.is_empty()).then_some(Step::Restrict { target, flags })
}

fn publish_block(read_only: bool, observed: &PublishObservation) -> Plan {
    let device = &observed.device;
    let mut steps = Vec::new();
    // A read-only bind mount does not prevent writes through a device node, so the device itself is set read-only
    // before it is published. The flag applies to all targets. The options of the mounts are not compared: kubelet
    // bind-mounts each target at a further path, always writable.
    if device.read_only != read_only {
        if let Some(other) = observed.other_targets.first() {
            let (found, path) = (access_name(device.read_only), other.point.display());
            let message =
                format!("the device is published {found} at {path}, and all target paths of a device share its access");
            return Err(PlanError::new(Failure::AccessModeConflict, message));
        }
        steps.push(Step::SetReadOnly(read_only));
    }
    let target = observed.target.path.clone();
    if let Some(mount) = &observed.target.mount {
        if observed.target.entry != Entry::BlockDevice(device.number) {
            return Err(PlanError::path_in_use(&observed.target, mount, None));
        }
        let missing = missing_read_only(&observed.target, mount, read_only)?;
        steps.extend(restrict(&target, MountFlags::default().and(missing)));
        return Ok(steps);
    }
    // Writes to the device would corrupt a mounted filesystem.
    if !observed.filesystem_mounts.is_empty() {
        return Err(PlanError::mounted_elsewhere(device, &observed.filesystem_mounts));
    }
    match observed.target.entry {
        Entry::File => {}
        Entry::Missing => steps.push(Step::MakeFile(target.clone())),
        other => return Err(PlanError::wrong_path_type(&target, other, "a file")),
    }
    steps.push(Step::BindDevice(target.clone()));
    steps.extend(restrict(&target, MountFlags::default().and(read_only.then_some("ro"))));
    Ok(steps)
}

/// The option `ro` if the volume is already mounted at the target without it: an earlier read-only call may have been
/// interrupted before it was added. A read-only target never becomes writable.
fn missing_read_only(
    path_state: &PathState,
    mount: &Mount,
    read_only: bool,
) -> Result<Option<&'static str>, PlanError> {
    match (mount.is_read_only(), read_only) {
        (true, true) | (false, false) => Ok(None),
        (false, true) => Ok(Some("ro")),
        (true, false) => Err(PlanError::incompatible(
            path_state,
            access_name(true),
            access_name(false),
        )),
    }
}
