//! The health of disks, as the cloud reports it.

use std::fmt;

use super::id::DiskId;

/// One row of `DescribeDisksFullStatus`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskHealth {
    pub disk: DiskId,
    /// `Ok`, `Warning`, `Impaired`, `Initializing`, `InsufficientData`, `NotApplicable`, or an unknown value.
    pub status: String,
    /// The current events, without those that have ended.
    pub events: Vec<HealthEvent>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HealthEvent {
    /// `Degraded`, `SeverelyDegraded`, `Stalled`, `ErrorDetected`, or an unknown value.
    pub kind: String,
    /// The ID of the event, for a support ticket.
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
