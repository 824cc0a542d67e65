//! What an operator needs to know about a refused attachment. It is read only then, and the refusal is reported also
//! where it cannot be read.

use std::time::Duration;

use super::call::Call;
use crate::cloud::view::Observation;
use crate::cloud::{self, Condition, DescribeDisks};
use crate::disk::error::{Error, refused};
use crate::model::{Disk, DiskKind, Failure};

const LONGEST: Duration = Duration::from_secs(5);

impl Call<'_> {
    /// The error for a disk that must not be attached to the node, or not like this.
    pub(super) fn unfit(self, failure: Failure, why: &str, source: Option<cloud::Error>) -> Error {
        let Self { disk, node, .. } = self;
        let text = format!("disk {disk} cannot be attached to node {node}{why}");
        refused(failure, text, source)
    }

    fn briefly(self) -> Self {
        let deadline = self.deadline.at_most(LONGEST);
        Self { deadline, ..self }
    }

    /// The error for a disk that is incompatible with the node.
    ///
    /// # Errors
    /// The refusal, if it does not say that.
    pub(super) async fn incompatible(self, source: cloud::Error) -> cloud::Result<Error> {
        let why = match source.condition() {
            Condition::SubscriptionDisk => {
                ": it is a subscription disk, which belongs to its instance"
            }
            Condition::LocalDisk | Condition::DeleteWithInstanceRequired => {
                ": disks of its category belong to one instance and cannot be moved"
            }
            Condition::AttachedElsewhereBefore => {
                ": it is an elastic ephemeral disk, which stays with the first instance that it was attached to"
            }
            Condition::SystemDisk | Condition::NotBootable => ": it is a system disk",
            Condition::InstanceTypeIncompatible | Condition::NodeNeedsRestart => {
                let call = self.briefly();
                let (row, instance_type) = tokio::join!(call.look(), call.instance_type());
                let row = row.ok().and_then(Observation::row);
                let unknown = || "unknown".to_owned();
                let category = row.map_or_else(unknown, |row| row.category.to_string());
                let instance_type = instance_type.unwrap_or_else(unknown);
                let Self { disk, node, .. } = self;
                let text = format!(
                    "disk {disk} of category {category} cannot be attached to node {node} of type {instance_type}"
                );
                // A type that supports the disk after a restart has a code of its own.
                return Ok(refused(source.failure(), text, source));
            }
            _ => return Err(source),
        };
        Ok(self.unfit(Failure::DiskNotPortable, why, Some(source)))
    }

    /// The error for a node, or a shared disk, at its limit of attachments.
    pub(super) async fn attach_limit_error(self, row: &Disk, source: cloud::Error) -> Error {
        if source.condition() == Condition::TooManyAttachments {
            let holders = row.attachments.len();
            let why = format!(": {holders} nodes hold it, and the maximum is 16");
            return self.unfit(Failure::TooManyAttachments, &why, Some(source));
        }
        let (disk, node) = self.ids();
        Error::AttachLimitExceeded {
            disk,
            node,
            counts: self.briefly().counts().await,
            source,
        }
    }

    /// The limit of disks of the node, and how many are attached.
    async fn counts(self) -> String {
        let (limit, held) = tokio::join!(self.limit(), self.held());
        limit.unwrap_or_default() + &held.unwrap_or_default()
    }

    async fn limit(self) -> Option<String> {
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

    async fn held(self) -> Option<String> {
        let query = DescribeDisks {
            instance: Some(self.node.clone()),
            ..DescribeDisks::default()
        };
        let page = self.attacher.ecs.describe_disks(self.deadline, &query);
        let rows = page.await.ok()?.rows.into_iter();
        let held = rows.filter(|row| row.kind != DiskKind::System).count();
        Some(format!("; attached are {held} data disks"))
    }

    async fn instance_type(self) -> Option<String> {
        let instances = &self.attacher.instances;
        let row = instances
            .observe(self.node, self.deadline)
            .await
            .ok()?
            .row()?;
        Some(row.instance_type.clone())
    }
}
