//! What an operator needs to know about a refused attachment. It is read only then, and the refusal is reported also
//! where it cannot be read.

use super::Attacher;
use std::time::Duration;

use super::incompatible::{Incompatible, Verdict, named};
use crate::base::Deadline;
use crate::cloud::view::Observation;
use crate::cloud::{self as api, Condition, DescribeDisks};
use crate::disk::Result;
use crate::disk::error::Error;
use crate::model::{Disk, DiskId, DiskKind, Instance, InstanceId};

/// Longest wait for an explanation.
const LONGEST: Duration = Duration::from_secs(5);

impl Attacher {
    /// The error for a disk that is incompatible with the node.
    pub(super) async fn incompatible(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
        verdict: Verdict,
        source: api::Error,
    ) -> Error {
        let soon = deadline.at_most(LONGEST);
        let error = match verdict {
            Verdict::NodeType => {
                let (row, instance) =
                    tokio::join!(self.disks.look(disk, soon), self.instance(soon, node));
                let row = row.ok().and_then(Observation::row);
                Incompatible::NodeType {
                    disk: disk.clone(),
                    category: named(row.as_ref().map(|row| &row.category)),
                    node: node.clone(),
                    instance_type: instance
                        .map_or_else(|| "unknown".to_owned(), |row| row.instance_type),
                    source,
                }
            }
            Verdict::Immovable(why) => Incompatible::Immovable {
                disk: disk.clone(),
                node: node.clone(),
                why,
                source,
            },
        };
        error.into()
    }

    /// The error for a node, or a shared disk, at its limit of attachments.
    pub(super) async fn full(
        &self,
        deadline: Deadline,
        row: &Disk,
        node: &InstanceId,
        source: api::Error,
    ) -> Error {
        if source.condition() == Condition::TooManyHolders {
            return Incompatible::Shared {
                disk: row.id.clone(),
                node: node.clone(),
                holders: row.attachments.len(),
                source,
            }
            .into();
        }
        Error::NodeFull {
            disk: row.id.clone(),
            node: node.clone(),
            counts: self.counts(deadline.at_most(LONGEST), node).await,
            source,
        }
    }

    /// The limit of disks of the node, and how many are attached.
    async fn counts(&self, deadline: Deadline, node: &InstanceId) -> String {
        let most = async {
            let kind = self.instance(deadline, node).await?.instance_type;
            let names = [kind];
            let types = self.ecs.describe_instance_types(deadline, &names).await;
            types.ok()?.into_iter().find(|row| row.name == names[0])
        };
        let (most, held) = tokio::join!(most, self.held(deadline, node));
        let most = most.map(|kind| {
            format!(
                ": its type {} takes {} disks, the system disk included",
                kind.name, kind.disk_quantity
            )
        });
        let held = held
            .ok()
            .map(|held| format!("; attached are {held} data disks"));
        most.unwrap_or_default() + &held.unwrap_or_default()
    }

    async fn held(&self, deadline: Deadline, node: &InstanceId) -> Result<usize> {
        let query = DescribeDisks {
            instance: Some(node.clone()),
            ..DescribeDisks::default()
        };
        let page = self.ecs.describe_disks(deadline, &query).await;
        let page = page.map_err(crate::disk::error::cloud("count the node's disks"))?;
        let data = |row: &&Disk| row.kind != DiskKind::System;
        Ok(page.rows.iter().filter(data).count())
    }

    async fn instance(&self, deadline: Deadline, node: &InstanceId) -> Option<Instance> {
        let row = self
            .instances
            .look(node, deadline)
            .await
            .ok()
            .and_then(Observation::row)?;
        Some(Instance::clone(&row))
    }
}
