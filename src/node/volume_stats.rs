//! Usage and health issues of a volume.

use super::health_issue::HealthIssue;
use crate::linux::Usage;
use crate::model::Bytes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeUsage {
    Filesystem(Usage),
    /// Only the capacity is known: a block volume, or a filesystem that does not respond.
    Device(Bytes),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeStats {
    /// `None` if the device was removed.
    pub usage: Option<VolumeUsage>,
    /// Empty if no issue is detected.
    pub health_issues: Vec<HealthIssue>,
}
