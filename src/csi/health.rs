use super::proto::volume_health::VolumeHealthEntry;
use super::proto::{VolumeHealth, VolumeHealthErrorType};
use crate::model::DiskId;
use crate::model::health::{HealthIssue, Severity};

pub(super) fn volume_health(disk: &DiskId, issues: &[HealthIssue]) -> VolumeHealth {
    let entry = |issue: &HealthIssue| VolumeHealthEntry {
        status: match issue.severity {
            Severity::Degraded => VolumeHealthErrorType::Degraded,
            Severity::Inaccessible => VolumeHealthErrorType::Inaccessible,
            Severity::DataLoss => VolumeHealthErrorType::DataLoss,
        }
        .into(),
        reason: issue.reason.clone(),
        message: issue.message.clone(),
    };
    VolumeHealth {
        volume_id: disk.to_string(),
        health_statuses: issues.iter().map(entry).collect(),
    }
}
