//! Spec changes that take their time, and `DescribeTasks`.

use jiff::Timestamp;
use serde::Serialize;

use super::params::Params;
use super::reply::{Answer, Listing, Refusal, Reply};
use super::world::World;

/// Most tasks that one call describes.
const MOST: usize = 100;

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum TaskStage {
    Processing,
    Finished,
    Failed,
}

impl TaskStage {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Processing => "Processing",
            Self::Finished => "Finished",
            Self::Failed => "Failed",
        }
    }
}

/// The spec that a disk is to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Spec {
    pub(crate) category: String,
    pub(crate) level: Option<String>,
    pub(crate) provisioned_iops: u64,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TaskRow {
    pub(crate) id: String,
    pub(crate) disk: String,
    pub(crate) to: Spec,
    pub(crate) stage: TaskStage,
    pub(crate) begun: Timestamp,
    pub(crate) ended: Option<Timestamp>,
}

impl World {
    /// Whether the spec of the disk is being changed.
    pub(crate) fn is_changing(&self, disk: &str) -> bool {
        let mut tasks = self.tasks.iter();
        tasks.any(|task| task.disk == disk && task.stage == TaskStage::Processing)
    }

    pub(crate) fn task_ended(&mut self, id: &str, success: bool) {
        let now = self.now;
        let Some(task) = self.tasks.iter_mut().find(|task| task.id == id) else {
            return;
        };
        task.stage = if success {
            TaskStage::Finished
        } else {
            TaskStage::Failed
        };
        task.ended = Some(now);
        let (disk, to) = (task.disk.clone(), task.to.clone());
        if success {
            self.put_spec(&disk, to, Some(now));
        }
    }

    /// The newest first, as drivers rely on.
    pub(crate) fn describe_tasks(&mut self, params: &Params) -> Reply {
        params.required("RegionId")?;
        let ids = params.get("TaskIds");
        let ids: Option<Vec<&str>> = ids.map(|ids| ids.split(',').map(str::trim).collect());
        let disks = params.list("ResourceIds");
        if ids.as_ref().is_some_and(|ids| ids.len() > MOST) || disks.len() > MOST {
            return Err(Refusal::new(400, "InvalidParameter"));
        }
        let status = params.get("TaskStatus");
        let known = matches!(params.get("TaskAction"), None | Some("ModifyDiskSpec"));
        let rows = self.tasks.iter().rev().filter(|row| {
            known
                && ids
                    .as_ref()
                    .is_none_or(|ids| ids.contains(&row.id.as_str()))
                && (disks.is_empty() || disks.contains(&row.disk.as_str()))
                && status.is_none_or(|status| status == row.stage.as_str())
        });
        let rows: Vec<_> = rows.map(|row| (row.id.clone(), row.clone())).collect();
        let page: Listing<TaskRow> = self.page(params, 1..=100, rows)?;
        Ok(Answer::Tasks(page))
    }
}
