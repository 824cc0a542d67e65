//! Tasks that change the category of a disk.

use jiff::Timestamp;
use serde::Serialize;

/// The names are those of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum TaskState {
    Processing,
    Finished,
    Failed,
}

/// The target of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Spec {
    pub(crate) category: String,
    pub(crate) level: Option<String>,
    pub(crate) provisioned_iops: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TaskRow {
    pub(crate) id: String,
    pub(crate) disk: String,
    pub(crate) to: Spec,
    pub(crate) stage: TaskState,
    pub(crate) begun: Timestamp,
    pub(crate) ended: Option<Timestamp>,
}

/// Whether a change of the disk's category is in progress.
pub(crate) fn is_changing(tasks: &[TaskRow], disk: &str) -> bool {
    tasks
        .iter()
        .any(|task| task.disk == disk && task.stage == TaskState::Processing)
}
