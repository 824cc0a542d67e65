//! Details of a rejected attach for operators. They are read only after the rejection, which is also reported without
//! them.

use std::time::Duration;

use ecs::poll::Observation;
use ecs::{Condition, DescribeDisks};

use super::attachments::Attachments;
use super::target::Target;
use crate::base::Deadline;
use crate::disk::error::{Error, rejected};
use crate::model::{Disk, DiskKind, Failure, InstanceId};

const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The error for a disk that is incompatible with the node; fails with the rejection if it has another reason.
pub(super) async fn incompatible_error(
    reader: &Attachments,
    target: Target<'_>,
    source: ecs::Error,
) -> ecs::Result<Error> {
    let why = match source.condition() {
        Condition::SubscriptionDisk => ": it is a subscription disk, which belongs to its instance",
        Condition::LocalDisk | Condition::DeleteWithInstanceRequired => {
            ": disks of its category belong to one instance and cannot be moved"
        }
        Condition::AttachedElsewhereBefore => {
            ": it is an elastic ephemeral disk, which stays with the first instance that it was attached to"
        }
        Condition::SystemDisk | Condition::NotBootable => ": it is a system disk",
        Condition::InstanceTypeIncompatible | Condition::NodeNeedsRestart => {
            let Target { disk, node, .. } = target;
            let deadline = target.deadline.at_most(READ_TIMEOUT);
            let row = reader.disks.observe(disk, deadline);
            let (row, instance_type) = tokio::join!(row, instance_type(reader, deadline, node));
            let row = row.ok().and_then(Observation::row);
            let unknown = || "unknown".to_owned();
            let category = row.map_or_else(unknown, |row| row.category.to_string());
            let instance_type = instance_type.unwrap_or_else(unknown);
            let text =
                format!("disk {disk} of category {category} cannot be attached to node {node} of type {instance_type}");
            // An instance type that supports the disk after a restart has a separate error code.
            return Ok(rejected(Failure::from(&source), text, source));
        }
        _ => return Err(source),
    };
    Ok(target.cannot_attach(Failure::DiskNotPortable, why, Some(source)))
}

/// The error for a node or multi-attach disk that has reached its attach limit.
pub(super) async fn attach_limit_error(
    reader: &Attachments,
    target: Target<'_>,
    row: &Disk,
    source: ecs::Error,
) -> Error {
    if source.condition() == Condition::TooManyAttachments {
        let holders = row.attachments.len();
        let why = format!(": {holders} nodes hold it, and the maximum is 16");
        return target.cannot_attach(Failure::TooManyAttachments, &why, Some(source));
    }
    let (disk, node) = target.ids();
    let deadline = target.deadline.at_most(READ_TIMEOUT);
    let (limit, attached) = tokio::join!(
        attach_limit(reader, deadline, &node),
        attached_disks(reader, deadline, &node)
    );
    Error::AttachLimitExceeded {
        disk,
        node,
        counts: limit.unwrap_or_default() + &attached.unwrap_or_default(),
        source,
    }
}

async fn attach_limit(reader: &Attachments, deadline: Deadline, node: &InstanceId) -> Option<String> {
    let names = [instance_type(reader, deadline, node).await?];
    let types = reader.ecs.describe_instance_types(deadline, &names).await;
    let mut types = types.ok()?.into_iter();
    let kind = types.find(|kind| kind.name == names[0])?;
    Some(format!(
        ": its type {} supports {} disks, including the system disk",
        kind.name, kind.disk_quantity
    ))
}

async fn attached_disks(reader: &Attachments, deadline: Deadline, node: &InstanceId) -> Option<String> {
    let query = DescribeDisks {
        instance: Some(node.clone()),
        ..DescribeDisks::default()
    };
    let page = reader.ecs.describe_disks(deadline, &query);
    let rows = page.await.ok()?.rows.into_iter();
    let attached = rows.filter(|row| row.kind != DiskKind::System).count();
    Some(format!("; {attached} data disks are attached"))
}

async fn instance_type(reader: &Attachments, deadline: Deadline, node: &InstanceId) -> Option<String> {
    let row = reader.instance(deadline, node).await?;
    Some(row.instance_type.clone())
}
