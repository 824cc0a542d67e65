//! Details of a rejected attach for operators. They are read only after the rejection, which is also reported without
//! them.

use std::time::Duration;

use ecs::poll::Observation;
use ecs::{Condition, DescribeDisks};

use super::call::Call;
use crate::disk::error::{Error, rejected};
use crate::model::{Disk, DiskKind, Failure};

const READ_TIMEOUT: Duration = Duration::from_secs(5);

impl Call<'_> {
    pub(super) fn cannot_attach(self, failure: Failure, why: &str, source: Option<ecs::Error>) -> Error {
        let Self { disk, node, .. } = self;
        let text = format!("disk {disk} cannot be attached to node {node}{why}");
        rejected(failure, text, source)
    }

    fn with_read_timeout(self) -> Self {
        let deadline = self.deadline.at_most(READ_TIMEOUT);
        Self { deadline, ..self }
    }

    /// The error for a disk that is incompatible with the node; fails with the rejection if it has another reason.
    pub(super) async fn incompatible_error(self, source: ecs::Error) -> ecs::Result<Error> {
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
                let call = self.with_read_timeout();
                let (row, instance_type) = tokio::join!(call.observe(), call.instance_type());
                let row = row.ok().and_then(Observation::row);
                let unknown = || "unknown".to_owned();
                let category = row.map_or_else(unknown, |row| row.category.to_string());
                let instance_type = instance_type.unwrap_or_else(unknown);
                let Self { disk, node, .. } = self;
                let text = format!(
                    "disk {disk} of category {category} cannot be attached to node {node} of type {instance_type}"
                );
                // An instance type that supports the disk after a restart has a separate error code.
                return Ok(rejected(Failure::from(&source), text, source));
            }
            _ => return Err(source),
        };
        Ok(self.cannot_attach(Failure::DiskNotPortable, why, Some(source)))
    }

    /// The error for a node or multi-attach disk that has reached its attach limit.
    pub(super) async fn attach_limit_error(self, row: &Disk, source: ecs::Error) -> Error {
        if source.condition() == Condition::TooManyAttachments {
            let holders = row.attachments.len();
            let why = format!(": {holders} nodes hold it, and the maximum is 16");
            return self.cannot_attach(Failure::TooManyAttachments, &why, Some(source));
        }
        let (disk, node) = self.ids();
        Error::AttachLimitExceeded {
            disk,
            node,
            counts: self.with_read_timeout().attach_counts().await,
            source,
        }
    }

    /// The attach limit of the node and the number of attached disks.
    async fn attach_counts(self) -> String {
        let (limit, attached) = tokio::join!(self.attach_limit(), self.attached_disks());
        limit.unwrap_or_default() + &attached.unwrap_or_default()
    }

    async fn attach_limit(self) -> Option<String> {
        let ecs = &self.attacher.ecs;
        let names = [self.instance_type().await?];
        let types = ecs.describe_instance_types(self.deadline, &names).await;
        let mut types = types.ok()?.into_iter();
        let kind = types.find(|kind| kind.name == names[0])?;
        Some(format!(
            ": its type {} supports {} disks, including the system disk",
            kind.name, kind.disk_quantity
        ))
    }

    async fn attached_disks(self) -> Option<String> {
        let query = DescribeDisks {
            instance: Some(self.node.clone()),
            ..DescribeDisks::default()
        };
        let page = self.attacher.ecs.describe_disks(self.deadline, &query);
        let rows = page.await.ok()?.rows.into_iter();
        let attached = rows.filter(|row| row.kind != DiskKind::System).count();
        Some(format!("; {attached} data disks are attached"))
    }

    async fn instance_type(self) -> Option<String> {
        let instances = &self.attacher.instances;
        let row = instances.observe(self.node, self.deadline).await.ok()?.row()?;
        Some(row.instance_type.clone())
    }
}
