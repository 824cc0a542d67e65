//! Tasks of the cloud: changes that take minutes to hours.

use std::fmt;

use jiff::Timestamp;

use super::id::TaskId;
use super::word::words;

/// One row of `DescribeTasks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub id: TaskId,
    pub status: TaskStatus,
    /// The ID of the changed resource, such as a disk.
    pub resource: String,
    pub created: Option<Timestamp>,
}

/// The state of a task (`TaskStatus` in the API).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskStatus {
    Processing,
    Finished,
    /// The resource is unchanged.
    Failed,
    Unknown(String),
}

words!(TaskStatus: Processing = "Processing", Finished = "Finished", Failed = "Failed");

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {} of {} is {}", self.id, self.resource, self.status)
    }
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
