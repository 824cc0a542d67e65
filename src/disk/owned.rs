//! What this driver creates under a CSI name: disks, snapshots and snapshot groups.

use std::fmt::{Debug, Display};
use std::future::Future;
use std::str::FromStr;

use jiff::Timestamp;

use crate::base::Deadline;
use crate::cloud::{
    self, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeSnapshotGroups,
    DescribeSnapshots, EcsApi, Page,
};
use crate::model::{Disk, DiskId, Snapshot, SnapshotGroup, SnapshotGroupId, SnapshotId, Tags};

const PAGE: u32 = 500;
/// Rows at which the cloud ends a list that is filtered by tags (ECS API, `DescribeDisks` and `DescribeSnapshots`).
pub(super) const MOST_BY_TAGS: usize = 1000;

/// A resource with the tags of its owner and its name.
pub(super) trait Owned: Clone + Display + Send + Sync + 'static {
    type Id: Clone + Ord + Debug + Display + FromStr + Send + Sync + 'static;

    const KIND: &'static str;
    const DESCRIBE: &'static str;
    /// Whether a call can prove absence. Otherwise long replication lag is indistinguishable from absence, and nothing may
    /// replace a created resource.
    const IS_NAMED: bool;

    fn id(&self) -> &Self::Id;
    fn tags(&self) -> &Tags;
    fn created(&self) -> Option<Timestamp>;

    /// A page of those that carry the tags.
    fn page(
        ecs: &dyn EcsApi,
        deadline: Deadline,
        tags: Tags,
        next: Option<String>,
    ) -> impl Future<Output = cloud::Result<Page<Self>>> + Send;
}

/// A request with a ClientToken that creates one. Its `Debug` text is all of its content.
pub(super) trait CreateRequest: Debug + Send + Sync {
    type Row: Owned;

    const ACTION: &'static str;

    fn send(
        &self,
        ecs: &dyn EcsApi,
        deadline: Deadline,
    ) -> impl Future<Output = cloud::Result<<Self::Row as Owned>::Id>> + Send;
}

/// Each row: its id and its name, whether a call names a missing one, its query, and the request that creates it.
macro_rules! owned {
    ($($row:ident by $id:ident: $kind:literal, $is_named:literal,
        $describe:ident($query:ident { $($field:ident: $value:expr)? }), $create:ident($request:ident);)*) => {$(
        impl Owned for $row {
            type Id = $id;

            const KIND: &'static str = $kind;
            const DESCRIBE: &'static str = stringify!($query);
            const IS_NAMED: bool = $is_named;

            fn id(&self) -> &$id {
                &self.id
            }

            fn tags(&self) -> &Tags {
                &self.tags
            }

            fn created(&self) -> Option<Timestamp> {
                self.created
            }

            async fn page(
                ecs: &dyn EcsApi,
                deadline: Deadline,
                tags: Tags,
                next: Option<String>,
            ) -> cloud::Result<Page<Self>> {
                let rest = $query::default();
                let query = $query { tags, next, $($field: $value,)? ..rest };
                let mut page = ecs.$describe(deadline, &query).await?;
                // A filter that was ignored must not make a resource of another name this one.
                let has = |row: &$row| query.tags.iter().all(|(key, tag)| row.tags.get(key) == Some(tag));
                page.rows.retain(has);
                Ok(page)
            }
        }

        impl CreateRequest for $request {
            type Row = $row;

            const ACTION: &'static str = stringify!($request);

            async fn send(&self, ecs: &dyn EcsApi, deadline: Deadline) -> cloud::Result<$id> {
                ecs.$create(deadline, self).await
            }
        }
    )*};
}

owned! {
    Disk by DiskId: "disk", true, describe_disks(DescribeDisks { page_size: Some(PAGE) }), create_disk(CreateDisk);
    Snapshot by SnapshotId: "snapshot", true, describe_snapshots(DescribeSnapshots {}), create_snapshot(CreateSnapshot);
    SnapshotGroup by SnapshotGroupId: "snapshot group", false,
        describe_snapshot_groups(DescribeSnapshotGroups {}), create_snapshot_group(CreateSnapshotGroup);
}
