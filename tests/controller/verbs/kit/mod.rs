//! The fixture of the tests: the fake cloud and the disk services on top of it, with shortcuts for common operations.

pub(crate) mod altered;
mod create;
mod group;
mod modify;
mod overlay;
mod publish;
mod request;

// The imports of every test.
pub(crate) use std::collections::{BTreeMap, BTreeSet};
pub(crate) use std::sync::Arc;
pub(crate) use std::time::Duration;

pub(crate) use serde_json::{Value, json};
pub(crate) use tokio::task::JoinSet;
pub(crate) use tokio::time::{Instant, timeout};

pub(crate) use diskplugin::base::Deadline;
pub(crate) use diskplugin::disk::{
    DiskServices, Error, FailureKind, GroupSnapshot, NewDisk, NewGroupSnapshot, NewSnapshot, NodeAccess, PublishRequest,
};
pub(crate) use diskplugin::model::{
    Category, Change, ClientToken, Disk, DiskId, Failure, InstanceId, PerformanceLevel, SizeRange, Snapshot,
    SnapshotGroupId, SnapshotId, Tags, tag,
};
pub(crate) use ecs::{AttachDisk, CreateSnapshot, DetachDisk};

use diskplugin::base::Tasks;
use diskplugin::model::ZoneId;
use ecs::Client;
use fake_ecs::{Cloud, ExistingDisk, Options, TokioClock};
use jiff::Timestamp;

use crate::common::ecs::essd;
pub(crate) use crate::common::memory_cloud::client;
pub(crate) use crate::common::rng::Rng;
pub(crate) use create::{create_until_row, is_final, retry, sleep};
pub(crate) use group::{assert_groups, first_group, group_of_two, new_group, snapshot_ids, two_disks};
pub(crate) use modify::{category_change, changed_properties, disk_of, full_change, modify, properties, tags, writes};
pub(crate) use overlay::Overlay;
pub(crate) use publish::single_node;
pub(crate) use request::{available, between, gib, in_zone, new_disk, new_snapshot, of_category, restored, sized};

/// Maximum delay between the end of an operation that takes whole seconds and the poll that observes it.
pub(crate) const POLL_TOLERANCE: Duration = Duration::from_millis(125);

/// A fake cloud with two nodes in zone a and one in zone b, and the disk services of one process. Clones are handles to
/// the same process. Flags and configurations are printed, so that the output of a failed test contains its case.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) cloud: Cloud,
    pub(crate) disks: Arc<DiskServices>,
}

impl Setup {
    pub(crate) fn new(flags: &[&str]) -> Self {
        Self::without_canary(flags).with_system_disk()
    }

    /// The same in an account that shows nothing else: no response proves the absence of a disk.
    pub(crate) fn without_canary(flags: &[&str]) -> Self {
        Self::of(
            "--nodes=i-one=cn-beijing-a,i-two=cn-beijing-a,i-far=cn-beijing-b",
            flags,
        )
    }

    fn of(nodes: &str, flags: &[&str]) -> Self {
        println!("cloud: {flags:?}");
        let options = Options::from_flags([nodes].into_iter().chain(flags.iter().copied()));
        let clock = TokioClock::starting_at(Timestamp::from_second(1_800_000_000).unwrap());
        let cloud = Cloud::in_memory(&options.unwrap(), Arc::new(clock));
        let disks = established(Arc::new(client(&cloud)));
        Self { cloud, disks }
    }

    /// One cloud for each documented alternative of its behaviour.
    pub(crate) fn alternatives(flags: &[&str]) -> impl Iterator<Item = Self> {
        ["first", "last"].into_iter().map(move |alternatives| {
            let setup = Self::new(flags);
            setup.configure(&json!({"rules": {"alternatives": alternatives}}));
            setup
        })
    }

    /// With `nodes` nodes in zone a, named `i-0`, `i-1` and so on.
    pub(crate) fn with_nodes(nodes: usize, flags: &[&str]) -> Self {
        Self::with_nodes_of("ecs.g6.large", nodes, flags)
    }

    /// The same with an instance type that supports multi-attach disks.
    pub(crate) fn with_multi_attach_nodes(nodes: usize, flags: &[&str]) -> Self {
        Self::with_nodes_of("ecs.g8i.large", nodes, flags)
    }

    /// The same with an instance type.
    pub(crate) fn with_nodes_of(instance_type: &str, nodes: usize, flags: &[&str]) -> Self {
        let nodes: Vec<_> = (0..nodes)
            .map(|n| format!("i-{n}=cn-beijing-a={instance_type}"))
            .collect();
        Self::of(&format!("--nodes={}", nodes.join(",")), flags)
    }

    /// A new process on the same cloud.
    pub(crate) fn restarted(&self) -> Self {
        self.process_of("test")
    }

    /// The driver of another cluster on the same cloud.
    pub(crate) fn other_cluster(&self) -> Self {
        self.process_of("other-cluster")
    }

    fn process_of(&self, cluster: &str) -> Self {
        let cloud = self.cloud.clone();
        let disks = disk_services(Arc::new(client(&cloud)), cluster);
        Self { cloud, disks }
    }

    pub(crate) fn configure(&self, patch: &Value) {
        println!("configure: {patch}");
        self.cloud.configure(patch).unwrap();
    }

    pub(crate) fn clear_faults(&self) {
        self.configure(&json!({"faults": []}));
    }

    /// Rejects the next call of the action.
    pub(crate) fn reject(&self, action: &str, status: u16, code: &str) {
        self.fault(action, &error_code(status, code));
    }

    /// Injects the fault into the next call of the action.
    pub(crate) fn fault(&self, action: &str, kind: &Value) {
        self.faults(action, 1, kind);
    }

    /// Injects the fault into the next `times` calls of the action.
    pub(crate) fn faults(&self, action: &str, times: u64, kind: &Value) {
        let fault = json!({"action": action, "times": times, "kind": kind});
        self.replace_faults(&json!([fault]));
    }

    /// Replaces all faults.
    pub(crate) fn replace_faults(&self, faults: &Value) {
        // An identical list would continue the count of the previous one.
        self.clear_faults();
        self.configure(&json!({"faults": faults}));
    }

    /// Makes a call while each request of the action has the fault, so that the client's retries fail too. Its error
    /// must not be final.
    pub(crate) async fn lose<T: std::fmt::Debug>(
        &self,
        action: &str,
        kind: &Value,
        call: impl Future<Output = Result<T, Error>>,
    ) {
        self.faults(action, 1_000_000, kind);
        let before = self.calls(action);
        let error = call.await.unwrap_err();
        assert!(self.calls(action) > before, "{action} was not called");
        // The deadline can pass during the pause before a retry.
        assert_unavailable(&error);
        self.clear_faults();
    }

    /// The same for a creation.
    pub(crate) async fn lose_create(&self, kind: &Value, new: &NewDisk) {
        self.lose("CreateDisk", kind, self.try_create(seconds(1), new)).await;
    }

    /// Number of calls of the action.
    pub(crate) fn calls(&self, action: &str) -> u64 {
        self.cloud.counts().get(action).map_or(0, |count| count.calls)
    }

    /// The current state of all data disks, regardless of stale reads.
    pub(crate) fn rows(&self) -> Vec<Value> {
        let state = self.cloud.state();
        let rows = state["disks"].as_array().unwrap().iter();
        rows.filter(|row| row["system"] != true).cloned().collect()
    }

    /// Adds the system disk of a node, which every account with nodes has: a response that contains it proves
    /// something.
    fn with_system_disk(self) -> Self {
        self.cloud.add_disk(&ExistingDisk {
            category: "cloud_essd".to_owned(),
            zone: Some("cn-beijing-a".to_owned()),
            system: true,
            portable: false,
            instance: Some("i-one".to_owned()),
        });
        self
    }

    /// The current state of the disk, or null if it does not exist.
    pub(crate) fn row(&self, disk: &DiskId) -> Value {
        let rows = self.rows();
        let row = rows.into_iter().find(|row| row["id"] == disk.as_str());
        row.unwrap_or_default()
    }

    /// Asserts that exactly one data disk exists and returns its ID.
    pub(crate) fn only_disk(&self) -> DiskId {
        let rows = self.rows();
        assert_eq!(rows.len(), 1, "{rows:#?}");
        rows[0]["id"].as_str().unwrap().parse().unwrap()
    }

    /// The first disk other than this one.
    pub(crate) fn other_disk(&self, disk: &DiskId) -> DiskId {
        let rows = self.rows();
        let other = rows.iter().find(|row| row["id"] != disk.as_str()).unwrap();
        other["id"].as_str().unwrap().parse().unwrap()
    }

    /// Current instance and state of each attachment of the disk.
    pub(crate) fn attachments(&self, disk: &DiskId) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let row = self.row(disk);
        let attachments = row["attachments"].as_array().into_iter().flatten();
        attachments.map(|a| (text(&a["instance"]), text(&a["state"]))).collect()
    }

    /// Creates an ESSD of 20 GiB in zone a.
    pub(crate) async fn disk(&self, name: &str) -> DiskId {
        self.try_create(minutes(5), &new_disk(name)).await.unwrap().id
    }

    /// The disks `pvc-0`, `pvc-1` and so on, without a record of their calls.
    pub(crate) async fn create_disks(&self, count: usize) -> Vec<DiskId> {
        let mut disks = Vec::new();
        for n in 0..count {
            disks.push(self.disk(&format!("pvc-{n}")).await);
        }
        self.cloud.clear_calls();
        disks
    }

    /// Creates `count` disks that are not the subject of the test.
    pub(crate) async fn other_disks(&self, count: usize) {
        for number in 0..count {
            self.disk(&format!("other-{number}")).await;
        }
    }

    /// A disk attached to node one.
    pub(crate) async fn attached(&self, name: &str) -> DiskId {
        let disk = self.disk(name).await;
        self.attach(&disk, &node_one()).await;
        disk
    }

    pub(crate) async fn try_create(&self, deadline: Deadline, new: &NewDisk) -> Result<Disk, Error> {
        self.disks.provisioner.create(deadline, new).await
    }

    pub(crate) async fn create(&self, new: &NewDisk) -> Disk {
        expect("create", self.try_create(minutes(1), new).await)
    }

    pub(crate) async fn try_clone(&self, deadline: Deadline, new: &NewDisk, source: &DiskId) -> Result<Disk, Error> {
        self.disks.provisioner.create_clone(deadline, new, source).await
    }

    pub(crate) async fn clone_disk(&self, new: &NewDisk, source: &DiskId) -> Disk {
        expect("clone", self.try_clone(minutes(5), new, source).await)
    }

    pub(crate) async fn try_delete(&self, deadline: Deadline, disk: &DiskId) -> Result<(), Error> {
        self.disks.provisioner.delete(deadline, disk).await
    }

    /// The disk must not exist afterwards.
    pub(crate) async fn delete(&self, disk: &DiskId) {
        expect("delete", self.try_delete(minutes(1), disk).await);
        let row = self.row(disk);
        assert!(row.is_null() || row["status"] == "Deleting", "{row:#}");
    }

    pub(crate) async fn try_attach(&self, deadline: Deadline, disk: &DiskId, node: &InstanceId) -> Result<Disk, Error> {
        self.disks.attacher.attach(deadline, disk, node).await
    }

    /// The row and the current state must show the attachment, without another one unless the disk is multi-attach.
    pub(crate) async fn attach(&self, disk: &DiskId, node: &InstanceId) -> Disk {
        let row = expect("attach", self.try_attach(minutes(1), disk, node).await);
        let attachments = self.attachments(disk);
        let expected = (node.to_string(), "Attached".to_owned());
        assert!(attachments.contains(&expected), "{node}: {attachments:?}");
        assert!(attachments.len() == 1 || row.multi_attach, "{node}: {attachments:?}");
        assert!(row.is_in_use_on(node), "{row}");
        row
    }

    pub(crate) async fn try_detach(&self, deadline: Deadline, disk: &DiskId, node: &InstanceId) -> Result<(), Error> {
        self.disks.detacher.detach(deadline, disk, node).await
    }

    /// The current state must not show the attachment.
    pub(crate) async fn detach(&self, disk: &DiskId, node: &InstanceId) {
        expect("detach", self.try_detach(minutes(1), disk, node).await);
        let attachments = self.attachments(disk);
        let is_other = |(holder, _): &(String, String)| holder != node.as_str();
        assert!(attachments.iter().all(is_other), "{node}: {attachments:?}");
    }

    pub(crate) async fn detach_everywhere(&self, disk: &DiskId) {
        let detached = self.disks.detacher.detach_everywhere(minutes(1), disk).await;
        expect("detach everywhere", detached);
        assert_eq!(self.attachments(disk), []);
    }

    pub(crate) async fn try_resize(&self, deadline: Deadline, disk: &DiskId, size: SizeRange) -> Result<Disk, Error> {
        self.disks.resizer.resize(deadline, disk, size).await
    }

    pub(crate) async fn resize(&self, disk: &DiskId, size: SizeRange) -> Disk {
        expect("resize", self.try_resize(minutes(1), disk, size).await)
    }

    pub(crate) async fn try_modify(&self, deadline: Deadline, disk: &DiskId, change: &Change) -> Result<(), Error> {
        self.disks.modifier.modify(deadline, disk, change).await
    }

    /// The current data disks of this cluster as ListVolumes returns them.
    pub(crate) async fn list(&self) -> Result<Vec<Disk>, Error> {
        self.disks.inventory.list(minutes(1), Disk::clone).await
    }

    pub(crate) async fn list_snapshots(
        &self,
        id: Option<&SnapshotId>,
        source: Option<&DiskId>,
    ) -> Result<Vec<Snapshot>, Error> {
        let inventory = &self.disks.inventory;
        inventory.list_snapshots(minutes(1), id, source, Snapshot::clone).await
    }

    pub(crate) async fn try_snapshot(&self, deadline: Deadline, new: &NewSnapshot) -> Result<Snapshot, Error> {
        self.disks.snapshotter.create(deadline, new).await
    }

    pub(crate) async fn create_snapshot(&self, new: &NewSnapshot) -> Snapshot {
        expect("create snapshot", self.try_snapshot(minutes(1), new).await)
    }

    pub(crate) async fn try_delete_snapshot(&self, deadline: Deadline, id: &SnapshotId) -> Result<(), Error> {
        self.disks.snapshotter.delete(deadline, id).await
    }

    /// Repeats the deletion until the absence of the snapshot is proven.
    pub(crate) async fn delete_snapshot(&self, id: &SnapshotId) {
        let delete = async || self.try_delete_snapshot(seconds(20), id).await;
        expect("delete snapshot", retry(100, delete).await);
    }

    pub(crate) async fn try_group(&self, deadline: Deadline, new: &NewGroupSnapshot) -> Result<GroupSnapshot, Error> {
        self.disks.snapshotter.create_group(deadline, new).await
    }

    pub(crate) async fn create_group(&self, new: &NewGroupSnapshot) -> GroupSnapshot {
        expect("create group", self.try_group(minutes(2), new).await)
    }

    pub(crate) async fn get_group(
        &self,
        id: &SnapshotGroupId,
        members: &BTreeSet<SnapshotId>,
    ) -> Result<GroupSnapshot, Error> {
        self.disks.snapshotter.get_group(minutes(1), id, members).await
    }

    pub(crate) async fn delete_group(&self, id: &SnapshotGroupId, members: &BTreeSet<SnapshotId>) -> Result<(), Error> {
        self.disks.snapshotter.delete_group(minutes(1), id, members).await
    }

    /// The current snapshots, regardless of stale reads.
    pub(crate) fn snapshots(&self) -> Vec<Value> {
        self.cloud.state()["snapshots"].as_array().unwrap().clone()
    }

    /// The current snapshot groups, regardless of stale reads.
    pub(crate) fn groups(&self) -> Vec<Value> {
        self.cloud.state()["groups"].as_array().unwrap().clone()
    }

    /// Asserts that exactly one snapshot exists and returns its ID.
    pub(crate) fn only_snapshot(&self) -> SnapshotId {
        let rows = self.snapshots();
        assert_eq!(rows.len(), 1, "{rows:#?}");
        rows[0]["id"].as_str().unwrap().parse().unwrap()
    }

    /// Calls AttachDisk directly, as a client other than the driver.
    pub(crate) async fn attach_externally(&self, disk: &DiskId, node: &InstanceId) {
        let request = AttachDisk {
            disk: disk.clone(),
            instance: node.clone(),
            force: false,
            delete_with_instance: false,
        };
        let attached = client(&self.cloud).attach_disk(minutes(1), &request).await;
        attached.unwrap();
    }

    /// DescribeDisks returns status 200 without rows for `seconds`, as it does without the permission.
    pub(crate) fn hide_disks(&self, seconds: u64) {
        let duration = format!("{seconds}s");
        self.configure(&json!({"faults": [{"action": "DescribeDisks", "for": duration, "kind": "no-rows"}]}));
    }

    /// Creates a disk with these tags directly in the cloud, as a client other than the driver.
    pub(crate) async fn unmanaged_disk(&self, tags: Tags) -> DiskId {
        let request = ecs::CreateDisk {
            tags,
            ..essd("unmanaged")
        };
        let created = client(&self.cloud).create_disk(minutes(1), &request).await;
        created.unwrap()
    }

    /// Adds a regional disk, which does not belong to a zone.
    pub(crate) fn regional_disk(&self) -> DiskId {
        let id = self.cloud.add_disk(&ExistingDisk {
            category: "cloud_regional_disk_auto".to_owned(),
            zone: None,
            system: false,
            portable: true,
            instance: None,
        });
        id.parse().unwrap()
    }

    /// Creates a disk that can be attached to several nodes.
    pub(crate) async fn multi_attach_disk(&self) -> DiskId {
        let request = ecs::CreateDisk {
            multi_attach: true,
            ..essd("shared")
        };
        let created = client(&self.cloud).create_disk(minutes(1), &request).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        created.unwrap()
    }

    /// Creates a snapshot through the disk services and waits until it is complete.
    pub(crate) async fn snapshot(&self, name: &str, source: &DiskId) -> SnapshotId {
        self.try_snapshot(minutes(5), &new_snapshot(name, source))
            .await
            .unwrap()
            .id
    }
}

/// Repeats a call as the sidecars do: after a growing pause, unless the error is final.
pub(crate) async fn with_retries<T, F>(call: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut pause = Duration::from_secs(1);
    loop {
        match call().await {
            Err(error) if !is_final(&error) && pause <= Duration::from_secs(512) => {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            outcome => return outcome,
        }
    }
}

/// Flags for the seeds of the fake cloud from 0.
pub(crate) fn seeds(count: u64) -> impl Iterator<Item = String> {
    (0..count).map(|seed| format!("--seed={seed}"))
}

/// The kind of a fault: calls are rejected with this status and code.
pub(crate) fn error_code(status: u16, code: &str) -> Value {
    json!({"code": {"status": status, "code": code}})
}

/// The result of a call that must succeed.
#[track_caller]
pub(crate) fn expect<T>(call: &str, outcome: Result<T, Error>) -> T {
    outcome.unwrap_or_else(|error| panic!("{call}: {}", text(&error)))
}

/// Asserts that the message of the RPC contains these parts.
#[track_caller]
pub(crate) fn assert_names(error: &Error, parts: &[&str]) {
    let text = text(error);
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Asserts the code of the RPC and parts of its message.
#[track_caller]
pub(crate) fn assert_error(error: &Error, kind: FailureKind, parts: &[&str]) {
    assert_eq!(error.failure_kind(), kind, "{}", text(error));
    assert_names(error, parts);
}

#[track_caller]
pub(crate) fn assert_failure(error: &Error, failure: Failure) {
    assert_eq!(error.failure(), failure, "{}", text(error));
}

/// Asserts that the error is `UNAVAILABLE` or `DEADLINE_EXCEEDED`.
#[track_caller]
pub(crate) fn assert_unavailable(error: &Error) {
    let codes = [FailureKind::Unavailable, FailureKind::DeadlineExceeded];
    assert!(codes.contains(&error.failure_kind()), "{}", text(error));
}

/// Asserts that the error is not final, so that the caller repeats the call.
#[track_caller]
pub(crate) fn assert_not_final(error: &Error) {
    assert!(!is_final(error), "{}", text(error));
}

/// The services of a process that has been active for ten minutes, so that requests of an earlier one have no effect
/// any longer.
pub(crate) fn established(ecs: Arc<Client>) -> Arc<DiskServices> {
    let since = Instant::now() - Duration::from_secs(600);
    let cluster = "test".parse().unwrap();
    let services = DiskServices::active_since(since, ecs, cluster, &Tasks::default());
    services.record_node(&node_one());
    Arc::new(services)
}

/// The services of a process that has just become active.
pub(crate) fn disk_services(ecs: Arc<Client>, cluster: &str) -> Arc<DiskServices> {
    let services = DiskServices::new(ecs, cluster.parse().unwrap(), &Tasks::default());
    services.record_node(&node_one());
    Arc::new(services)
}

pub(crate) fn minutes(minutes: u64) -> Deadline {
    seconds(60 * minutes)
}

pub(crate) fn seconds(seconds: u64) -> Deadline {
    Deadline::after(Duration::from_secs(seconds))
}

pub(crate) fn node_one() -> InstanceId {
    "i-one".parse().unwrap()
}

pub(crate) fn node_two() -> InstanceId {
    "i-two".parse().unwrap()
}

pub(crate) fn zone(letter: &str) -> ZoneId {
    format!("cn-beijing-{letter}").parse().unwrap()
}

/// One attachment to the node, complete.
pub(crate) fn attached_to(node: &InstanceId) -> Vec<(String, String)> {
    vec![(node.to_string(), "Attached".to_owned())]
}

/// The error message of the RPC: error name, causes and advice.
pub(crate) fn text(error: &diskplugin::disk::Error) -> String {
    let (failure, chain) = (error.failure(), diskplugin::base::error_chain(error));
    format!("{}: {chain}; {}", failure.name(), failure.advice())
}
