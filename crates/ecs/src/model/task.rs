//! A task of the cloud: a change that lasts minutes to hours.

use std::fmt;

use jiff::Timestamp;

use super::id::TaskId;
use super::word::words;

/// One row of `DescribeTasks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub id: TaskId,
    /// How far it is.
    pub status: TaskStatus,
    /// What it changes, such as a disk.
    pub resource: String,
    /// When it was begun.
    pub created: Option<Timestamp>,
}

/// How far a task is (`TaskStatus` in the API).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskStatus {
    Processing,
    Finished,
    /// Given up; what it should have changed is as it was.
    Failed,
    Unknown(String),
}

words!(TaskStatus: Processing = "Processing", Finished = "Finished", Failed = "Failed");

/// How far it is, for an operator.
impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {} of {} is {}", self.id, self.resource, self.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_status_keeps_its_word() {
        assert_eq!("Cancelled".parse(), Ok(TaskStatus::Unknown("Cancelled".to_owned())));
        assert_eq!("Finished".parse(), Ok(TaskStatus::Finished));
    }
}
