//! How a disk is, in the eyes of the cloud.

use std::fmt;

use super::id::DiskId;

/// One row of `DescribeDisksFullStatus`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskHealth {
    pub disk: DiskId,
    /// The cloud's word: `Ok`, `Warning`, `Impaired`, `Initializing`, `InsufficientData`, `NotApplicable`, or another.
    pub status: String,
    /// What happens to it now; events that are over are left out.
    pub events: Vec<HealthEvent>,
}

/// Something that happens to a disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HealthEvent {
    /// The cloud's word: `Degraded`, `SeverelyDegraded`, `Stalled`, `ErrorDetected`, or another.
    pub kind: String,
    /// The event's id, for a support ticket.
    pub id: String,
}

/// The health for operators, with the cloud's events.
impl fmt::Display for DiskHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "disk {} is {}", self.disk, self.status)?;
        for event in &self.events {
            write!(f, ", {} (event {})", event.kind, event.id)?;
        }
        Ok(())
    }
}
