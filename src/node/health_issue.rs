//! Usage and health issues of volumes, with advice. A pod that is only deleted may start again on the same mount, so
//! pods must be stopped. `recovery` is how the filesystem becomes usable again after that.

use std::path::Path;
use std::time::Duration;

use crate::linux::{Device, Usage};
use crate::model::Bytes;
use crate::model::health::{HealthIssue, Severity};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeStats {
    /// `None` if the device was removed.
    pub usage: Option<VolumeUsage>,
    /// Empty if no issue is detected.
    pub health_issues: Vec<HealthIssue>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeUsage {
    Filesystem(Usage),
    /// Only the capacity is known: a block volume, or a filesystem that does not respond.
    Device(Bytes),
}

pub(super) fn device_gone(path: &Path) -> HealthIssue {
    let message = format!(
        "the device of the volume mounted at {} was removed: stop all pods that use the volume, and start them again, so \
         that the volume is attached again",
        path.display()
    );
    HealthIssue::new(Severity::Inaccessible, "DeviceGone", message)
}

pub(super) fn filesystem_hangs(path: &Path, since: Duration) -> HealthIssue {
    let message = format!(
        "the filesystem at {} has not responded for {} s: check the disk in the console and the kernel log; if it \
         persists, stop the instance, because the volume can only be released then",
        path.display(),
        since.as_secs()
    );
    HealthIssue::new(Severity::Inaccessible, "FilesystemHangs", message)
}

pub(super) fn filesystem_shut_down(device: &Device, recovery: &str) -> HealthIssue {
    let message = format!(
        "the filesystem on {device} has shut down after an error, and all I/O fails: check the kernel log, and stop \
         all pods that use the volume; {recovery}"
    );
    HealthIssue::new(Severity::Inaccessible, "FilesystemShutDown", message)
}

pub(super) fn remounted_read_only(device: &Device, recovery: &str) -> HealthIssue {
    let message = format!(
        "the kernel remounted the filesystem on {device} read-only after an error: check the kernel log, and stop \
         all pods that use the volume; {recovery}"
    );
    HealthIssue::new(Severity::Degraded, "RemountedReadOnly", message)
}

pub(super) fn device_read_only(device: &Device) -> HealthIssue {
    let message = format!(
        "{device} is read-only, but its filesystem is mounted read-write: stop all pods that use the volume, and start \
         them again, so that the volume is staged again"
    );
    HealthIssue::new(Severity::Degraded, "DeviceReadOnly", message)
}

pub(super) fn device_too_small(device: &Device, filesystem: Bytes) -> HealthIssue {
    let message = format!(
        "{device} has {}, but its filesystem has {filesystem}: the data beyond the end of the device is lost; stop the \
         pod, and restore a snapshot or check the filesystem manually",
        device.size
    );
    HealthIssue::new(Severity::DataLoss, "DeviceTooSmall", message)
}

pub(super) fn filesystem_errors(device: &Device, errors: &str, recovery: &str) -> HealthIssue {
    let message = format!(
        "the filesystem on {device} has recorded errors ({errors}): check the kernel log, create a snapshot, and stop \
         all pods that use the volume; {recovery}"
    );
    HealthIssue::new(Severity::Degraded, "FilesystemErrors", message)
}
