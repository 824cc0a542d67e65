//! The resources that this driver creates under a CSI name: disks, snapshots and snapshot groups.

use std::fmt::{Debug, Display};
use std::future::Future;
use std::str::FromStr;

use ecs::{
    self, Client, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeSnapshotGroups,
    DescribeSnapshots, Page,
};
use jiff::Timestamp;

use super::evidence::Nodes;
use super::ownership::Owner;
use crate::base::Deadline;
use crate::model::{Disk, DiskId, Snapshot, SnapshotGroup, SnapshotGroupId, SnapshotId, Tags};

pub(super) const PAGE: u32 = 500;
/// Number of rows at which the cloud truncates a list filtered by tags (ECS, `DescribeDisks` and `DescribeSnapshots`).
pub(super) const MAX_FILTERED_ROWS: usize = 1000;

pub(super) trait OwnedResource: Clone + Display + Send + Sync + 'static {
    type Id: Clone + Ord + Debug + Display + FromStr + Send + Sync + 'static;

    const KIND: &'static str;
    const DESCRIBE: &'static str;

    fn id(&self) -> &Self::Id;
    fn tags(&self) -> &Tags;
    fn created(&self) -> Option<Timestamp>;

    /// Whether the row must be visible to every access key of this cluster: it has the cluster's tag, or is the system
    /// disk of a node.
    fn is_canary(row: &Self, owner: &Owner, nodes: &Nodes) -> bool;

    fn list_page(
        ecs: &Client,
        deadline: Deadline,
        tags: Tags,
        next: Option<String>,
    ) -> impl Future<Output = ecs::Result<Page<Self>>> + Send;
}

/// A create request with a ClientToken. Its `Debug` text is the complete content.
pub(super) trait CreateRequest: Debug + Send + Sync {
    type Row: OwnedResource;

    const ACTION: &'static str;

    fn send(
        &self,
        ecs: &Client,
        deadline: Deadline,
    ) -> impl Future<Output = ecs::Result<<Self::Row as OwnedResource>::Id>> + Send;
}

/// Each row: the type, its ID and kind, the other canaries, the query, and the create request.
macro_rules! owned {
    ($($row:ident by $id:ident: $kind:literal, |$canary:ident, $nodes:ident| $is_canary:expr,
        $describe:ident($query:ident { $($field:ident: $value:expr)? }), $create:ident($request:ident);)*) => {$(
        impl OwnedResource for $row {
            type Id = $id;

            const KIND: &'static str = $kind;
            const DESCRIBE: &'static str = stringify!($query);

            fn id(&self) -> &$id {
                &self.id
            }

            fn tags(&self) -> &Tags {
                &self.tags
            }

            fn created(&self) -> Option<Timestamp> {
                self.created
            }

            fn is_canary($canary: &Self, owner: &Owner, $nodes: &Nodes) -> bool {
                owner.owns(&$canary.tags) || $is_canary
            }

            async fn list_page(
                ecs: &Client,
                deadline: Deadline,
                tags: Tags,
                next: Option<String>,
            ) -> ecs::Result<Page<Self>> {
                let rest = $query::default();
                let query = $query { tags, next, $($field: $value,)? ..rest };
                let mut page = ecs.$describe(deadline, &query).await?;
                // If the cloud ignores the filter, resources of other names must not match.
                let has = |row: &$row| query.tags.iter().all(|(key, tag)| row.tags.get(key) == Some(tag));
                page.rows.retain(has);
                Ok(page)
            }
        }

        impl CreateRequest for $request {
            type Row = $row;

            const ACTION: &'static str = stringify!($request);

            async fn send(&self, ecs: &Client, deadline: Deadline) -> ecs::Result<$id> {
                ecs.$create(deadline, self).await
            }
        }
    )*};
}

owned! {
    Disk by DiskId: "disk", |row, nodes| nodes.has_system_disk(row),
        describe_disks(DescribeDisks { page_size: Some(PAGE) }), create_disk(CreateDisk);
    Snapshot by SnapshotId: "snapshot", |row, _nodes| false,
        describe_snapshots(DescribeSnapshots {}), create_snapshot(CreateSnapshot);
    SnapshotGroup by SnapshotGroupId: "snapshot group", |row, _nodes| false,
        describe_snapshot_groups(DescribeSnapshotGroups {}), create_snapshot_group(CreateSnapshotGroup);
}
