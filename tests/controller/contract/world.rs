//! A fake cloud whose clock the test controls, and a client of it.

// The imports of every contract.
pub(crate) use std::collections::BTreeSet;
pub(crate) use std::sync::Arc;
pub(crate) use std::time::Duration;

pub(crate) use diskplugin::base::Deadline;
pub(crate) use diskplugin::model::{
    Category, ClientToken, Disk, DiskId, DiskStatus, Gib, InstanceId, PerformanceLevel, Snapshot, SnapshotId,
    SnapshotStatus, Tags, ZoneStock,
};
pub(crate) use ecs::sign::Scheme;
pub(crate) use ecs::{
    AttachDisk, Client, CreateDisk, CreateSnapshot, DescribeDisks, DescribeSnapshots, DescribeStock, DescribeTasks,
    DetachDisk, DiskAttribute, Error, Kind, ModifyDiskAttribute, ModifyDiskSpec, ResizeDisk, ResizeMode, Result,
    TagResources, TagTarget,
};
pub(crate) use fake_ecs::Options;
pub(crate) use serde_json::json;

use std::sync::Mutex;

use diskplugin::model::{TaskId, ZoneId};
use fake_ecs::{Clock, Cloud};
use jiff::Timestamp;
use serde_json::Value;
use wiremock::MockServer;

pub(crate) use crate::common::ecs::{attach_to, client_at, detach_from, essd, snapshot_of};
use crate::common::memory_cloud;

pub(crate) const ZONE: &str = "cn-beijing-a";
pub(crate) const FAR_ZONE: &str = "cn-beijing-b";

/// How the client is connected to the fake cloud.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Connection {
    Memory,
    Http(Scheme),
}

impl Connection {
    pub(crate) const HTTP_V1: Self = Self::Http(Scheme::V1);
    pub(crate) const HTTP_V3: Self = Self::Http(Scheme::V3);
}

/// The clock of a fake cloud and of its client.
#[derive(Debug)]
struct Time(Mutex<Timestamp>);

impl Clock for Time {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// A fake cloud with two instances in one zone and a third one in another, of a type that supports only ESSDs and
/// AutoPL disks.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) ecs: Client,
    pub(crate) cloud: Cloud,
    /// `None` in memory.
    _server: Option<MockServer>,
    time: Arc<Time>,
}

impl World {
    pub(crate) async fn open(connection: Connection) -> Self {
        let nodes = format!("--nodes=i-one={ZONE},i-two={ZONE},i-far={FAR_ZONE}=ecs.g7.large");
        let options = Options::from_flags([nodes.as_str()]).unwrap();
        // Not a whole second: responses have no fractions.
        let start = "2026-01-15T08:00:00.25Z".parse().unwrap();
        let time = Arc::new(Time(Mutex::new(start)));
        let cloud = Cloud::in_memory(&options, Arc::clone(&time) as _);
        let (server, ecs) = match connection {
            Connection::Memory => (None, memory_cloud::client(&cloud)),
            Connection::Http(scheme) => {
                let server = MockServer::start().await;
                cloud.mount(&server).await;
                let clock = Arc::new(memory_cloud::CloudClock(cloud.clone()));
                let ecs = client_at(&server.uri(), scheme, clock);
                (Some(server), ecs)
            }
        };
        Self {
            ecs,
            cloud,
            _server: server,
            time,
        }
    }

    /// Advances the clock.
    pub(crate) fn pass(&self, seconds: u64) {
        *self.time.0.lock().unwrap() += Duration::from_secs(seconds);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.time.now()
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads well with json!")]
    pub(crate) fn configure(&self, patch: Value) {
        self.cloud.configure(&patch).unwrap();
    }

    /// The number of disks, without lag.
    pub(crate) fn disks(&self) -> usize {
        self.cloud.state()["disks"].as_array().unwrap().len()
    }

    /// The number of snapshots, without lag.
    pub(crate) fn snapshots(&self) -> usize {
        self.cloud.state()["snapshots"].as_array().unwrap().len()
    }

    /// The number of calls of an action.
    pub(crate) fn calls(&self, action: &str) -> u64 {
        self.cloud.counts().get(action).map_or(0, |count| count.calls)
    }
}

pub(crate) fn deadline() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

pub(crate) fn zone(name: &str) -> ZoneId {
    name.parse().unwrap()
}

pub(crate) fn node(id: &str) -> InstanceId {
    id.parse().unwrap()
}

pub(crate) fn tags(pairs: &[(&str, &str)]) -> Tags {
    let own = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
    pairs.iter().map(own).collect()
}

pub(crate) async fn attach(ecs: &Client, disk: &DiskId, instance: &str) -> Result<()> {
    ecs.attach_disk(deadline(), &attach_to(disk, &node(instance))).await
}

pub(crate) async fn detach(ecs: &Client, disk: &DiskId, instance: &str) -> Result<()> {
    ecs.detach_disk(deadline(), &detach_from(disk, &node(instance))).await
}

pub(crate) async fn create(ecs: &Client, request: &CreateDisk) -> Result<DiskId> {
    ecs.create_disk(deadline(), request).await
}

pub(crate) async fn snapshot(ecs: &Client, request: &CreateSnapshot) -> Result<SnapshotId> {
    ecs.create_snapshot(deadline(), request).await
}

pub(crate) async fn modify(ecs: &Client, request: &ModifyDiskSpec) -> Result<Option<TaskId>> {
    ecs.modify_disk_spec(deadline(), request).await
}

pub(crate) async fn resize(ecs: &Client, request: &ResizeDisk) -> Result<()> {
    ecs.resize_disk(deadline(), request).await
}

/// A request for a 20 GiB ESSD with changes.
pub(crate) fn essd_with(name: &str, change: impl FnOnce(&mut CreateDisk)) -> CreateDisk {
    let mut request = essd(name);
    change(&mut request);
    request
}

pub(crate) fn tagged_essd(name: &str, pairs: &[(&str, &str)]) -> CreateDisk {
    essd_with(name, |disk| disk.tags = tags(pairs))
}

pub(crate) fn tagged_snapshot_of(disk: &DiskId, name: &str, pairs: &[(&str, &str)]) -> CreateSnapshot {
    CreateSnapshot {
        tags: tags(pairs),
        ..snapshot_of(disk, name)
    }
}

/// A modification without changes.
pub(crate) fn to(disk: &DiskId) -> ModifyDiskSpec {
    ModifyDiskSpec {
        disk: disk.clone(),
        category: None,
        performance_level: None,
        provisioned_iops: None,
        dry_run: false,
    }
}

pub(crate) fn to_category(disk: &DiskId, category: Category) -> ModifyDiskSpec {
    ModifyDiskSpec {
        category: Some(category),
        ..to(disk)
    }
}

pub(crate) fn to_auto(disk: &DiskId) -> ModifyDiskSpec {
    to_category(disk, Category::CloudAuto)
}

pub(crate) async fn disk_of(ecs: &Client, name: &str, category: Category, size: u32) -> DiskId {
    let request = essd_with(name, |disk| (disk.category, disk.size) = (category, Gib(size)));
    create(ecs, &request).await.unwrap()
}

pub(crate) fn resize_to(disk: &DiskId, size: u32, mode: ResizeMode) -> ResizeDisk {
    ResizeDisk {
        disk: disk.clone(),
        size: Gib(size),
        mode,
        token: ClientToken::derive("ResizeDisk", [disk.as_str(), &size.to_string()]),
    }
}

/// The IDs of the listed disks, which fit on one page.
pub(crate) async fn listed(ecs: &Client, query: &DescribeDisks) -> Vec<DiskId> {
    let page = ecs.describe_disks(deadline(), query).await.unwrap();
    assert_eq!(page.next, None);
    page.rows.into_iter().map(|row| row.id).collect()
}

pub(crate) async fn disks_by_tags(ecs: &Client, pairs: &[(&str, &str)]) -> Vec<DiskId> {
    let query = DescribeDisks {
        tags: tags(pairs),
        ..DescribeDisks::default()
    };
    listed(ecs, &query).await
}

/// The IDs of the listed snapshots.
pub(crate) async fn listed_snapshots(ecs: &Client, query: &DescribeSnapshots) -> Vec<SnapshotId> {
    let page = ecs.describe_snapshots(deadline(), query).await.unwrap();
    page.rows.into_iter().map(|row| row.id).collect()
}

pub(crate) async fn snapshots_by_tags(ecs: &Client, pairs: &[(&str, &str)]) -> Vec<SnapshotId> {
    let query = DescribeSnapshots {
        tags: tags(pairs),
        ..DescribeSnapshots::default()
    };
    listed_snapshots(ecs, &query).await
}

/// The error code of a rejected call.
#[track_caller]
pub(crate) fn code<T: std::fmt::Debug>(outcome: Result<T>) -> String {
    outcome.unwrap_err().code().unwrap_or_default().to_owned()
}

/// A new 20 GiB ESSD.
pub(crate) async fn create_essd(ecs: &Client, name: &str) -> DiskId {
    create(ecs, &essd(name)).await.unwrap()
}

/// The described disk, if any.
pub(crate) async fn described(ecs: &Client, disk: &DiskId) -> Option<Disk> {
    let query = DescribeDisks {
        ids: Some(vec![disk.clone()]),
        ..DescribeDisks::default()
    };
    let page = ecs.describe_disks(deadline(), &query).await.unwrap();
    assert!(page.rows.len() <= 1 && page.next.is_none(), "{page:?}");
    page.rows.into_iter().next()
}

/// The described snapshot, if any.
pub(crate) async fn described_snapshot(ecs: &Client, snapshot: &SnapshotId) -> Option<Snapshot> {
    let query = DescribeSnapshots {
        ids: Some(vec![snapshot.clone()]),
        ..DescribeSnapshots::default()
    };
    let page = ecs.describe_snapshots(deadline(), &query).await.unwrap();
    assert!(page.rows.len() <= 1 && page.next.is_none(), "{page:?}");
    page.rows.into_iter().next()
}

/// Asserts the kind and the code of a rejected call.
#[track_caller]
pub(crate) fn assert_rejected<T: std::fmt::Debug>(outcome: Result<T>, kind: Kind, code: &str) {
    assert_eq!(expect_error(outcome, kind).code(), Some(code));
}

/// The error, which must be of this kind.
#[track_caller]
pub(crate) fn expect_error<T: std::fmt::Debug>(outcome: Result<T>, kind: Kind) -> Error {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    error
}
