//! Parameters and rows of spec changes and their tasks.

use serde::Deserialize;

use super::Row;
use super::params::Params;
use crate::action::{DescribeTasks, DiskAttribute, ModifyDiskAttribute, ModifyDiskSpec};
use crate::model::{Task, TaskId};

/// `ModifyDiskSpec`. Unset options are not sent: the API rejects an empty `PerformanceLevel`.
pub fn modify(request: &ModifyDiskSpec) -> Params {
    Params::default()
        .set("DiskId", &request.disk)
        .set_some("DiskCategory", request.category.as_ref())
        .set_some("PerformanceLevel", request.performance_level)
        .set_some("ProvisionedIops", request.provisioned_iops)
        .flag("DryRun", request.dry_run)
}

pub fn attribute(request: &ModifyDiskAttribute) -> Params {
    let params = Params::default().set("DiskId", &request.disk);
    match request.attribute {
        DiskAttribute::Bursting(value) => params.set("BurstingEnabled", value),
        DiskAttribute::DeleteWithInstance(value) => params.set("DeleteWithInstance", value),
    }
}

pub fn describe(query: &DescribeTasks) -> Params {
    let params = Params::numbered_page().set("TaskAction", "ModifyDiskSpec");
    match query {
        DescribeTasks::Ids(ids) => {
            let ids: Vec<_> = ids.iter().map(TaskId::as_str).collect();
            params.set("TaskIds", ids.join(","))
        }
        DescribeTasks::Disk(disk) => params.list("ResourceIds", [disk]),
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Modified {
    /// The task of a change of the category.
    pub task_id: Option<TaskId>,
}

impl Row for Task {
    const LIST: &'static str = "TaskSet";
    const ID: &'static str = "TaskId";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Page;
    use crate::model::{Category, TaskStatus};
    use crate::wire::read;

    #[test]
    fn unchanged_options_are_not_sent() {
        let request = ModifyDiskSpec {
            disk: "d-1".parse().unwrap(),
            category: Some(Category::CloudAuto),
            performance_level: None,
            provisioned_iops: None,
            dry_run: true,
        };
        let params = modify(&request);
        let flat: Vec<_> = params.as_map().iter().collect();
        let text = |s: &str| s.to_owned();
        assert_eq!(
            flat,
            [
                (&text("DiskCategory"), &text("cloud_auto")),
                (&text("DiskId"), &text("d-1")),
                (&text("DryRun"), &text("true")),
            ]
        );
    }

    #[test]
    fn a_task_is_parsed_with_and_without_its_time() {
        let json = r#"{"TaskSet":{"Task":[
            {"TaskId":"t-1","TaskAction":"ModifyDiskSpec","TaskStatus":"Processing",
             "ResourceId":"d-1","CreationTime":"2021-06-07T06:08:54Z"},
            {"TaskId":"t-2","TaskStatus":"Finished"}]}}"#;
        let page = read::<Page<Task>>(json.as_bytes()).unwrap();
        assert_eq!(page.rows[0].to_string(), "task t-1 of d-1 is Processing");
        assert_eq!(page.rows[1].status, TaskStatus::Finished);
        assert!(page.rows[0].created.is_some() && page.rows[1].created.is_none());
    }
}
