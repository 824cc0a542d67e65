//! Tasks of the cloud: changes that take minutes to hours.

use std::fmt;

use jiff::Timestamp;
use serde::Deserialize;

use super::id::TaskId;
use super::read::{self, Row};
use super::word::words;

/// One row of `DescribeTasks`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Task {
    #[serde(rename = "TaskId")]
    pub id: TaskId,
    #[serde(rename = "TaskStatus")]
    pub status: TaskStatus,
    /// The ID of the changed resource, such as a disk.
    #[serde(default, rename = "ResourceId")]
    pub resource: String,
    #[serde(default, rename = "CreationTime", deserialize_with = "read::time")]
    pub created: Option<Timestamp>,
}

words! {
    /// The state of a task.
    TaskStatus or Unknown:
    Processing = "Processing",
    Finished = "Finished",
    /// The resource is unchanged.
    Failed = "Failed",
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {} of {} is {}", self.id, self.resource, self.status)
    }
}

impl Row for Task {
    const LIST: &'static str = "TaskSet";
    const ID: &'static str = "TaskId";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_status_keeps_its_name() {
        assert_eq!("Cancelled".parse(), Ok(TaskStatus::Unknown("Cancelled".to_owned())));
        assert_eq!("Finished".parse(), Ok(TaskStatus::Finished));
    }
}
