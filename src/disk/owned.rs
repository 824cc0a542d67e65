//! What this driver creates under a CSI name: disks, snapshots and snapshot groups.

use std::fmt::{Debug, Display};
use std::future::Future;
use std::str::FromStr;

use jiff::Timestamp;

use crate::base::Deadline;
use crate::cloud::{
    self, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeSnapshotGroups,
    DescribeSnapshots, Ecs, Page,
};
use crate::model::{Disk, DiskId, Snapshot, SnapshotGroup, SnapshotGroupId, SnapshotId, Tags};

/// Rows a page of disks.
const PAGE: u32 = 500;

/// A resource with the tags of its owner and its name.
pub(super) trait Owned: Clone + Display + Send + Sync + 'static {
    type Id: Clone + Ord + Debug + Display + FromStr + Send + Sync + 'static;

    const KIND: &'static str;
    /// The action that lists them.
    const DESCRIBE: &'static str;

    fn id(&self) -> &Self::Id;
    fn tags(&self) -> &Tags;
    fn created(&self) -> Option<Timestamp>;

    /// A page of those that carry the tags.
    fn page(
        ecs: &dyn Ecs,
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
        ecs: &dyn Ecs,
        deadline: Deadline,
    ) -> impl Future<Output = cloud::Result<<Self::Row as Owned>::Id>> + Send;
}

impl Owned for Disk {
    type Id = DiskId;

    const KIND: &'static str = "disk";
    const DESCRIBE: &'static str = "DescribeDisks";

    fn id(&self) -> &DiskId {
        &self.id
    }

    fn tags(&self) -> &Tags {
        &self.tags
    }

    fn created(&self) -> Option<Timestamp> {
        self.created
    }

    async fn page(
        ecs: &dyn Ecs,
        deadline: Deadline,
        tags: Tags,
        next: Option<String>,
    ) -> cloud::Result<Page<Self>> {
        let query = DescribeDisks {
            tags,
            next,
            page_size: Some(PAGE),
            ..DescribeDisks::default()
        };
        ecs.describe_disks(deadline, &query).await
    }
}

impl Owned for Snapshot {
    type Id = SnapshotId;

    const KIND: &'static str = "snapshot";
    const DESCRIBE: &'static str = "DescribeSnapshots";

    fn id(&self) -> &SnapshotId {
        &self.id
    }

    fn tags(&self) -> &Tags {
        &self.tags
    }

    fn created(&self) -> Option<Timestamp> {
        self.created
    }

    async fn page(
        ecs: &dyn Ecs,
        deadline: Deadline,
        tags: Tags,
        next: Option<String>,
    ) -> cloud::Result<Page<Self>> {
        let query = DescribeSnapshots {
            tags,
            next,
            ..DescribeSnapshots::default()
        };
        ecs.describe_snapshots(deadline, &query).await
    }
}

impl Owned for SnapshotGroup {
    type Id = SnapshotGroupId;

    const KIND: &'static str = "snapshot group";
    const DESCRIBE: &'static str = "DescribeSnapshotGroups";

    fn id(&self) -> &SnapshotGroupId {
        &self.id
    }

    fn tags(&self) -> &Tags {
        &self.tags
    }

    fn created(&self) -> Option<Timestamp> {
        self.created
    }

    async fn page(
        ecs: &dyn Ecs,
        deadline: Deadline,
        tags: Tags,
        next: Option<String>,
    ) -> cloud::Result<Page<Self>> {
        let query = DescribeSnapshotGroups {
            tags,
            next,
            ..DescribeSnapshotGroups::default()
        };
        ecs.describe_snapshot_groups(deadline, &query).await
    }
}

impl CreateRequest for CreateDisk {
    type Row = Disk;

    const ACTION: &'static str = "CreateDisk";

    async fn send(&self, ecs: &dyn Ecs, deadline: Deadline) -> cloud::Result<DiskId> {
        ecs.create_disk(deadline, self).await
    }
}

impl CreateRequest for CreateSnapshot {
    type Row = Snapshot;

    const ACTION: &'static str = "CreateSnapshot";

    async fn send(&self, ecs: &dyn Ecs, deadline: Deadline) -> cloud::Result<SnapshotId> {
        ecs.create_snapshot(deadline, self).await
    }
}

impl CreateRequest for CreateSnapshotGroup {
    type Row = SnapshotGroup;

    const ACTION: &'static str = "CreateSnapshotGroup";

    async fn send(&self, ecs: &dyn Ecs, deadline: Deadline) -> cloud::Result<SnapshotGroupId> {
        ecs.create_snapshot_group(deadline, self).await
    }
}
