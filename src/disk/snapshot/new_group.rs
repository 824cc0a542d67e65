//! The request for a snapshot group.

use std::collections::BTreeSet;

use super::create_once::Request;
use super::{Snapshotter, key};
use crate::base::Deadline;
use crate::cloud::{self as api, CreateSnapshotGroup, DescribeSnapshotGroups};
use crate::disk::Result;
use crate::disk::error::cloud;
use crate::disk::ownership::display_name;
use crate::disk::ownership_listing::OwnershipListing;
use crate::disk::tag_index::readable;
use crate::model::{ClientToken, DiskId, SnapshotGroupId, Tags};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGroup {
    /// The CSI name; the same name is the same group.
    pub name: String,
    pub sources: BTreeSet<DiskId>,
    /// Resource group to bill it to; none is the account's default.
    pub resource_group: Option<String>,
    /// Tags of the group and of its snapshots, beside the driver's own.
    pub tags: Tags,
}

impl Request for NewGroup {
    type Id = SnapshotGroupId;

    const ACTION: &'static str = "CreateSnapshotGroup";

    fn key(&self) -> String {
        key::of_group(&self.name)
    }

    fn content(&self) -> Vec<&str> {
        self.sources.iter().map(DiskId::as_str).collect()
    }

    fn listing<'a>(&self, snapshotter: &'a Snapshotter) -> &'a OwnershipListing {
        &snapshotter.group_listing
    }

    async fn send(
        &self,
        snapshotter: &Snapshotter,
        deadline: Deadline,
        token: ClientToken,
    ) -> api::Result<SnapshotGroupId> {
        let mut tags = self.tags.clone();
        tags.extend(snapshotter.owner.tags_of(&self.name));
        let request = CreateSnapshotGroup {
            disks: self.sources.iter().cloned().collect(),
            name: display_name(&self.name),
            resource_group: self.resource_group.clone(),
            tags,
            token,
        };
        let ecs = &snapshotter.ecs;
        ecs.create_snapshot_group(deadline, &request).await
    }

    async fn find(
        &self,
        snapshotter: &Snapshotter,
        deadline: Deadline,
        gone: Option<&str>,
    ) -> Result<Option<SnapshotGroupId>> {
        let query = DescribeSnapshotGroups {
            tags: snapshotter.owner.tags_of(&self.name),
            ..DescribeSnapshotGroups::default()
        };
        let ecs = &snapshotter.ecs;
        let page = ecs.describe_snapshot_groups(deadline, &query).await;
        let page = page.and_then(|page| readable(&page, "DescribeSnapshotGroups").map(|()| page));
        let look = format!("look for an earlier group of {:?}", self.name);
        let rows = page.map_err(cloud(look))?.rows.into_iter();
        let rows = rows.filter(|row| gone != Some(row.id.as_str()));
        let oldest = rows.min_by_key(|row| (row.created, row.id.clone()));
        Ok(oldest.map(|row| row.id))
    }
}
