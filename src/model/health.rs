//! The health of volumes and disks.

pub use ecs::model::health::{DiskHealth, HealthEvent};

/// Start of the node plugin's warning about a volume, by which the history of the volume is searched.
pub const UNHEALTHY: &str = "the volume is unhealthy";
pub const HEALTHY_AGAIN: &str = "the volume is healthy again";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The volume is usable with restrictions.
    Degraded,
    Inaccessible,
    DataLoss,
}

/// A health issue of a disk in the cloud, or of a volume on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HealthIssue {
    pub severity: Severity,
    /// A machine-readable reason in CamelCase, as in Kubernetes conditions; unique per disk.
    pub reason: String,
    pub message: String,
}

impl HealthIssue {
    pub fn new(severity: Severity, reason: impl Into<String>, message: String) -> Self {
        Self {
            severity,
            reason: reason.into(),
            message,
        }
    }
}
