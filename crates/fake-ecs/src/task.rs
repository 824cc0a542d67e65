//! Tasks that change the category of a disk, and `DescribeTasks`.

use jiff::Timestamp;
use serde::Serialize;

use super::modify;
use super::page;
use super::params::Params;
use super::response::{ApiError, ApiResponse, ApiResult, Listing};
use super::world::World;

/// Maximum number of tasks in one call.
const MAX: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum TaskState {
    Processing,
    Finished,
    Failed,
}

impl TaskState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Processing => "Processing",
            Self::Finished => "Finished",
            Self::Failed => "Failed",
        }
    }
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

pub(crate) fn modify_finished(world: &mut World, id: &str, success: bool) {
    let now = world.now;
    let Some(task) = world.tasks.iter_mut().find(|task| task.id == id) else {
        return;
    };
    task.stage = if success {
        TaskState::Finished
    } else {
        TaskState::Failed
    };
    task.ended = Some(now);
    let (disk, to) = (task.disk.clone(), task.to.clone());
    if success {
        modify::put_spec(world, &disk, to, Some(now));
    }
}

/// Newest first; drivers rely on it.
pub(crate) fn describe_tasks(world: &mut World, params: &Params) -> ApiResult {
    params.required("RegionId")?;
    let ids = params.get("TaskIds");
    let ids: Option<Vec<&str>> = ids.map(|ids| ids.split(',').map(str::trim).collect());
    let disks = params.list("ResourceIds");
    if ids.as_ref().is_some_and(|ids| ids.len() > MAX) || disks.len() > MAX {
        return Err(ApiError::new(400, "InvalidParameter"));
    }
    let status = params.get("TaskStatus");
    let known = matches!(params.get("TaskAction"), None | Some("ModifyDiskSpec"));
    let rows = world.tasks.iter().rev().filter(|row| {
        known
            && ids
                .as_ref()
                .is_none_or(|ids| ids.contains(&row.id.as_str()))
            && (disks.is_empty() || disks.contains(&row.disk.as_str()))
            && status.is_none_or(|status| status == row.stage.as_str())
    });
    let rows: Vec<_> = rows.map(|row| (row.id.clone(), row.clone())).collect();
    let page: Listing<TaskRow> = page::page(world, params, 1..=100, rows)?;
    Ok(ApiResponse::Tasks(page))
}
