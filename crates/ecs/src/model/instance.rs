//! Instances and their types.

use std::fmt;

use serde::Deserialize;

use super::id::{InstanceId, ZoneId};
use super::read::{self, Row};
use super::tag::Tags;
use super::word::words;

words! {
    /// The state of an instance (`Status` in the API).
    InstanceStatus or Unknown:
    Pending = "Pending",
    Starting = "Starting",
    Running = "Running",
    Stopping = "Stopping",
    Stopped = "Stopped",
}

/// One row of `DescribeInstances`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Instance {
    #[serde(rename = "InstanceId")]
    pub id: InstanceId,
    /// The instance type, such as `ecs.g6.large`.
    pub instance_type: String,
    #[serde(rename = "ZoneId")]
    pub zone: ZoneId,
    pub status: InstanceStatus,
    #[serde(default, deserialize_with = "read::tags")]
    pub tags: Tags,
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instance {} is {}", self.id, self.status.as_str())
    }
}

/// One row of `DescribeInstanceTypes`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct InstanceType {
    /// The name, such as `ecs.g6.large`.
    #[serde(rename = "InstanceTypeId")]
    pub name: String,
    /// Attach limit of the type, including the system disk.
    #[serde(default)]
    pub disk_quantity: u32,
}

impl Row for Instance {
    const LIST: &'static str = "Instances";
    const ID: &'static str = "InstanceId";
}

impl Row for InstanceType {
    const LIST: &'static str = "InstanceTypes";
    const ID: &'static str = "InstanceTypeId";
}
