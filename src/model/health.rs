//! The health of volumes and disks.

pub use ecs::model::health::{DiskHealth, HealthEvent};

/// Start of the node plugin's warning about a volume, by which the history of the volume is searched.
pub const UNHEALTHY: &str = "the volume is unhealthy";
pub const HEALTHY_AGAIN: &str = "the volume is healthy again";
