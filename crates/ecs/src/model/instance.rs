//! Instances and their types.

use std::fmt;

use super::id::{InstanceId, ZoneId};
use super::tag::Tags;
use super::word::words;

/// The state of an instance (`Status` in the API).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceStatus {
    Pending,
    Starting,
    Running,
    Stopping,
    Stopped,
    Unknown(String),
}

words!(
    InstanceStatus: Pending = "Pending", Starting = "Starting", Running = "Running", Stopping = "Stopping", Stopped = "Stopped"
);

/// One row of `DescribeInstances`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    pub id: InstanceId,
    /// The instance type, such as `ecs.g6.large`.
    pub instance_type: String,
    pub zone: ZoneId,
    pub status: InstanceStatus,
    pub tags: Tags,
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instance {} is {}", self.id, self.status.as_str())
    }
}

/// One row of `DescribeInstanceTypes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceType {
    /// The name, such as `ecs.g6.large`.
    pub name: String,
    /// Attach limit of the type, including the system disk (`DiskQuantity`).
    pub disk_quantity: u32,
}
