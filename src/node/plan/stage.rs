//! Plans staging.

use super::common::{access_name, check_usable, ensure_directory, foreign_data, grow_mounted, needs_growth};
use super::partition::{check_formatted, check_not_partitioned};
use super::{Access, PathState, Plan, PlanError, StageRequest, Step};
use crate::linux::{Content, Device, Mount, MountRequest};
use crate::model::{Bytes, Failure, Filesystem, Fsck, MountFlags};
use crate::node::error::Error;
use crate::node::format_record::FormatRecord;

#[derive(Debug)]
pub(in crate::node) struct StageObservation {
    /// The disk, or its only partition.
    pub(in crate::node) device: Device,
    /// Whether the device is a partition that ends well before the disk.
    pub(in crate::node) partition_grows: bool,
    pub(in crate::node) staging: PathState,
    /// Whether the staged filesystem rejects writes after an error.
    pub(in crate::node) rejects_writes: bool,
    pub(in crate::node) elsewhere: Vec<Mount>,
    /// `None` if the device is in use.
    pub(in crate::node) content: Option<Content>,
    pub(in crate::node) format_record: FormatRecord,
    /// The size in the superblock of a mounted filesystem. The caller returns its error unless the plan has one.
    pub(in crate::node) mounted_size: Result<Option<Bytes>, Error>,
    /// Whether the process may resize a mounted ext filesystem (`CAP_SYS_RESOURCE`).
    pub(in crate::node) ext_grows_mounted: bool,
}

impl StageObservation {
    /// Whether the filesystem grows after it is mounted. The kernel journals each step of an online
    /// resize, so an interruption is harmless. An interrupted resize2fs of an unmounted filesystem
    /// leaves damage that `e2fsck -p` does not repair.
    fn grows_mounted(&self, filesystem: Filesystem) -> bool {
        self.ext_grows_mounted || !filesystem.is_ext()
    }
}

/// Plans staging. The device of a disk that is attached read-only is set read-only first, because even a read-only
/// mount replays the journal.
pub(in crate::node) fn stage(request: &StageRequest, observed: &StageObservation) -> Plan {
    let steps = stage_access(request, observed)?;
    let set_read_only = request.device_read_only && !observed.device.read_only;
    let set_read_only = set_read_only.then_some(Step::SetReadOnly(true));
    Ok(set_read_only.into_iter().chain(steps).collect())
}

fn stage_access(request: &StageRequest, observed: &StageObservation) -> Plan {
    match (&request.access, &observed.staging.mount) {
        (Access::Block, None) => {
            check_not_mounted(observed)?;
            // The pod writes to the device from now on, so the record proves nothing.
            Ok(remove_format_record(observed).into_iter().collect())
        }
        (Access::Block, Some(mount)) => Err(if mount.is_of(&observed.device) {
            PlanError::incompatible(&observed.staging, format!("as {}", mount.kind), "a device")
        } else {
            PlanError::path_in_use(&observed.staging, mount, None)
        }),
        (Access::Mount { filesystem, .. }, Some(mount)) => {
            stage_mounted(*filesystem, request.read_only, mount, observed)
        }
        (Access::Mount { filesystem, flags }, None) => {
            check_not_mounted(observed)?;
            stage_unmounted(*filesystem, flags, request, observed)
        }
    }
}

fn stage_mounted(filesystem: Filesystem, read_only: bool, mount: &Mount, observed: &StageObservation) -> Plan {
    if !mount.is_of(&observed.device) || !mount.is_whole() {
        return Err(PlanError::path_in_use(&observed.staging, mount, None));
    }
    check_usable(&observed.staging, mount, filesystem, read_only, observed.rejects_writes)?;
    if mount.is_read_only() != read_only {
        let found = access_name(mount.is_read_only());
        return Err(PlanError::incompatible(
            &observed.staging,
            found,
            access_name(read_only),
        ));
    }
    let size = observed.mounted_size.as_ref().ok().copied().flatten();
    // An earlier call may have been interrupted between mounting and growing.
    let grow = observed.partition_grows || observed.grows_mounted(filesystem) && needs_growth(size, &observed.device);
    if !grow || read_only {
        return Ok(Vec::new());
    }
    let staging = &observed.staging.path;
    Ok(grow_mounted(filesystem, staging, observed.partition_grows).collect())
}

fn stage_unmounted(
    filesystem: Filesystem,
    flags: &MountFlags,
    request: &StageRequest,
    observed: &StageObservation,
) -> Plan {
    let (read_only, tuning) = (request.read_only, &request.tuning);
    let device = &observed.device;
    check_not_partitioned(device)?;
    if !device.holders.is_empty() {
        let message = format!("{device} is in use by {}", device.holders.join(", "));
        return Err(PlanError::new(Failure::DeviceInUse, message));
    }
    check_formatted(device, observed.content.as_ref())?;
    let format = || Step::Format {
        filesystem,
        tuning: tuning.clone(),
    };
    let mut steps: Vec<Step> = Vec::new();
    if device.read_only && !read_only {
        steps.push(Step::SetReadOnly(false));
    }
    let mut grows_mounted = false;
    match &observed.content {
        Some(Content::Blank) if read_only => {
            let message = format!("{device} is blank, and read-only use never formats a disk");
            return Err(PlanError::new(Failure::ReadOnlyUnsupported, message));
        }
        Some(Content::Blank) => steps.push(format()),
        Some(Content::Filesystem { filesystem: found, .. }) if !filesystem.mounts(*found) => {
            let message = format!("{device} has {found}, but {filesystem} was requested");
            return Err(PlanError::new(Failure::ForeignData, message));
        }
        // A read-only request neither checks nor grows the filesystem.
        Some(Content::Filesystem { .. }) if read_only => {
            steps.extend(remove_format_record(observed));
        }
        Some(Content::Filesystem { size, .. }) => {
            // The mkfs completed before its record was removed.
            steps.extend(remove_format_record(observed));
            if filesystem.is_ext() && tuning.fsck != Fsck::None {
                steps.push(Step::Check(filesystem, tuning.fsck));
            }
            grows_mounted = observed.partition_grows;
            if !grows_mounted && needs_growth(*size, device) {
                grows_mounted = observed.grows_mounted(filesystem);
                let unmounted = (!grows_mounted).then_some(Step::GrowUnmounted(filesystem, tuning.fsck));
                steps.extend(unmounted);
            }
        }
        Some(content @ (Content::IncompleteFormat { .. } | Content::Unknown { .. })) => {
            check_format_interrupted(content, filesystem, read_only, observed)?;
            steps.extend([Step::Wipe, format()]);
        }
        Some(Content::Unsupported { description }) => {
            return Err(foreign_data(device, description, filesystem));
        }
        None => return Err(foreign_data(device, "unread content", filesystem)),
    }
    let target = &observed.staging.path;
    steps.extend(ensure_directory(&observed.staging)?);
    steps.push(Step::Mount(MountRequest {
        target: target.clone(),
        filesystem,
        flags: flags.clone(),
        read_only,
    }));
    if grows_mounted {
        steps.extend(grow_mounted(filesystem, target, observed.partition_grows));
    }
    Ok(steps)
}

fn remove_format_record(observed: &StageObservation) -> Option<Step> {
    (observed.format_record != FormatRecord::None).then_some(Step::RemoveFormatRecord)
}

/// Checks that the format record proves that the content was left by an interrupted mkfs of this driver on a blank
/// disk. Only then is mkfs repeated.
fn check_format_interrupted(
    content: &Content,
    requested: Filesystem,
    read_only: bool,
    observed: &StageObservation,
) -> Result<(), PlanError> {
    let error = |filesystem: &str, why: &str| {
        let message = format!(
            "{} contains {content}: a mkfs.{filesystem} was interrupted on it and is not repeated because {why}; if \
             the content is not needed, wipe the disk manually (wipefs -a, then blkdiscard -z)",
            observed.device
        );
        PlanError::new(Failure::FormatInterrupted, message)
    };
    match (&observed.format_record, content) {
        (FormatRecord::Current, _) if read_only => Err(error(requested.as_str(), "read-only use never formats a disk")),
        (FormatRecord::Current, _) => Ok(()),
        (FormatRecord::Stale { filesystem, reason }, _) => Err(error(filesystem, reason)),
        (FormatRecord::None, Content::IncompleteFormat { filesystem }) => Err(error(
            filesystem.as_str(),
            "no record of this node proves that the disk was blank before",
        )),
        (FormatRecord::None, _) => Err(foreign_data(&observed.device, &content.to_string(), requested)),
    }
}

fn check_not_mounted(observed: &StageObservation) -> Result<(), PlanError> {
    if observed.elsewhere.is_empty() {
        return Ok(());
    }
    Err(PlanError::mounted_elsewhere(&observed.device, &observed.elsewhere))
}
