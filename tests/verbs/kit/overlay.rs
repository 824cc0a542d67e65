//! A cloud in which the access key can become that of another account, and rows can have any status.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use jiff::Timestamp;

use diskplugin::base::Deadline;
use diskplugin::cloud::{
    AttachDisk, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeInstances,
    DescribeSnapshotGroups, DescribeSnapshots, DescribeStock, DescribeTasks, DetachDisk, EcsApi,
    ModifyDiskAttribute, ModifyDiskSpec, Page, ResizeDisk, Result, TagResources, UndeletedSnapshot,
    UntagResources,
};
use diskplugin::model::{
    Disk, DiskHealth, DiskId, DiskStatus, Instance, InstanceType, Snapshot, SnapshotGroup,
    SnapshotGroupId, SnapshotId, Task, TaskId, ZoneStock,
};
use diskplugin::sim::{Cloud, SimEcs};

#[derive(Debug)]
pub(crate) struct Overlay {
    accounts: Vec<SimEcs>,
    key: AtomicU64,
    statuses: Mutex<BTreeMap<DiskId, DiskStatus>>,
}

impl Overlay {
    /// One account per cloud; the key is that of the first.
    pub(crate) fn new(accounts: &[&Cloud]) -> Self {
        Self {
            accounts: accounts.iter().map(|cloud| cloud.ecs()).collect(),
            key: AtomicU64::new(0),
            statuses: Mutex::default(),
        }
    }

    /// The mounted Secret becomes the key of this account.
    pub(crate) fn use_account(&self, account: usize) {
        self.key
            .store(u64::try_from(account).unwrap(), Ordering::Relaxed);
    }

    /// Rows of the disk show this status.
    pub(crate) fn show_status(&self, disk: &DiskId, status: Option<&str>) {
        let mut statuses = self.statuses.lock().unwrap();
        match status {
            Some(status) => drop(statuses.insert(disk.clone(), status.parse().unwrap())),
            None => drop(statuses.remove(disk)),
        }
    }

    fn ecs(&self) -> &SimEcs {
        &self.accounts[usize::try_from(self.key.load(Ordering::Relaxed)).unwrap()]
    }
}

macro_rules! overlay {
    ($($method:ident($request:ty) -> $response:ty;)*) => {
        #[async_trait]
        impl EcsApi for Overlay {
            fn key_generation(&self) -> u64 {
                self.key.load(Ordering::Relaxed)
            }

            fn server_time(&self) -> Option<Timestamp> {
                self.ecs().server_time()
            }

            async fn describe_disks(&self, deadline: Deadline, query: &DescribeDisks) -> Result<Page<Disk>> {
                let mut page = self.ecs().describe_disks(deadline, query).await?;
                let statuses = self.statuses.lock().unwrap();
                for row in &mut page.rows {
                    if let Some(status) = statuses.get(&row.id) {
                        row.status = status.clone();
                    }
                }
                drop(statuses);
                Ok(page)
            }

            $(async fn $method(&self, deadline: Deadline, request: &$request) -> Result<$response> {
                self.ecs().$method(deadline, request).await
            })*
        }
    };
}

overlay! {
    create_disk(CreateDisk) -> DiskId;
    delete_disk(DiskId) -> ();
    attach_disk(AttachDisk) -> ();
    detach_disk(DetachDisk) -> ();
    resize_disk(ResizeDisk) -> ();
    modify_disk_spec(ModifyDiskSpec) -> Option<TaskId>;
    modify_disk_attribute(ModifyDiskAttribute) -> ();
    describe_tasks(DescribeTasks) -> Page<Task>;
    describe_disk_health([DiskId]) -> Page<DiskHealth>;
    create_snapshot(CreateSnapshot) -> SnapshotId;
    delete_snapshot(SnapshotId) -> ();
    describe_snapshots(DescribeSnapshots) -> Page<Snapshot>;
    create_snapshot_group(CreateSnapshotGroup) -> SnapshotGroupId;
    describe_snapshot_groups(DescribeSnapshotGroups) -> Page<SnapshotGroup>;
    delete_snapshot_group(SnapshotGroupId) -> Vec<UndeletedSnapshot>;
    tag_resources(TagResources) -> ();
    untag_resources(UntagResources) -> ();
    describe_instances(DescribeInstances) -> Page<Instance>;
    describe_instance_types([String]) -> Vec<InstanceType>;
    describe_available_resource(DescribeStock) -> Vec<ZoneStock>;
}
