//! The fixture of the tests: the fake cloud and the disk services on top of it, with shortcuts for common operations.

pub(crate) mod altered;
pub(crate) mod create;
pub(crate) mod detach;
pub(crate) mod group;
pub(crate) mod modify;
pub(crate) mod overlay;
pub(crate) mod publish;
mod request;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use diskplugin::base::{Deadline, Tasks};
use diskplugin::disk::{DiskServices, Error, FailureKind, NewDisk};
use diskplugin::model::{Disk, DiskId, InstanceId, SnapshotId, Tags, ZoneId};
use ecs::{AttachDisk, Client};
use fake_ecs::{Cloud, ExistingDisk, Options, TokioClock};

pub(crate) use request::{available, between, gib, new_disk, new_snapshot};

use crate::common::ecs::essd;
use crate::common::memory_cloud::client;

/// Maximum delay between the end of an operation that takes whole seconds and the poll that observes it.
pub(crate) const POLL_TOLERANCE: Duration = Duration::from_millis(125);

/// A fake cloud with two nodes in zone a and one in zone b, and the disk services of one process.
#[derive(Debug)]
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
        let cloud = cloud(flags);
        let disks = established(Arc::new(client(&cloud)));
        Self { cloud, disks }
    }

    /// With `nodes` nodes in zone a, named `i-0`, `i-1` and so on.
    pub(crate) fn with_nodes(nodes: usize, flags: &[&str]) -> Self {
        let nodes: Vec<_> = (0..nodes).map(|n| format!("i-{n}=cn-beijing-a")).collect();
        let cloud = cloud_of(&format!("--nodes={}", nodes.join(",")), flags);
        let disks = established(Arc::new(client(&cloud)));
        Self { cloud, disks }
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
        let cloud = cloud_of(&format!("--nodes={}", nodes.join(",")), flags);
        let disks = established(Arc::new(client(&cloud)));
        Self { cloud, disks }
    }

    /// The disk services of a new process on the same cloud.
    pub(crate) fn restarted(&self) -> Arc<DiskServices> {
        disk_services(Arc::new(client(&self.cloud)), "test")
    }

    /// The disk services of another cluster's driver on the same cloud.
    pub(crate) fn other_cluster(&self) -> Arc<DiskServices> {
        disk_services(Arc::new(client(&self.cloud)), "other-cluster")
    }

    pub(crate) fn configure(&self, patch: &Value) {
        self.cloud.configure(patch).unwrap();
    }

    /// Injects the fault into the next call of the action.
    pub(crate) fn fault(&self, action: &str, kind: &Value) {
        self.faults(action, 1, kind);
    }

    /// Injects the fault into the next `times` calls of the action.
    pub(crate) fn faults(&self, action: &str, times: u64, kind: &Value) {
        let fault = json!({"action": action, "times": times, "kind": kind});
        // An identical list would continue the count of the previous one.
        self.configure(&json!({"faults": []}));
        self.configure(&json!({"faults": [fault]}));
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
        let expected = [FailureKind::Unavailable, FailureKind::DeadlineExceeded];
        assert!(expected.contains(&error.failure_kind()), "{kind}: {}", text(&error));
        self.configure(&json!({"faults": []}));
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

    /// Current instance and state of each attachment of the disk.
    pub(crate) fn attachments(&self, disk: &DiskId) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let row = self.row(disk);
        let attachments = row["attachments"].as_array().into_iter().flatten();
        attachments.map(|a| (text(&a["instance"]), text(&a["state"]))).collect()
    }

    /// Creates an ESSD of 20 GiB in zone a through the disk services.
    pub(crate) async fn disk(&self, name: &str) -> DiskId {
        self.disks
            .provisioner
            .create(minutes(5), &new_disk(name))
            .await
            .unwrap()
            .id
    }

    /// Creates `count` disks that are not the subject of the test.
    pub(crate) async fn other_disks(&self, count: usize) {
        for number in 0..count {
            self.disk(&format!("other-{number}")).await;
        }
    }

    pub(crate) async fn create(&self, new: &NewDisk) -> Disk {
        let created = self.disks.provisioner.create(minutes(1), new).await;
        created.unwrap_or_else(|error| panic!("create: {}", text(&error)))
    }

    pub(crate) async fn delete(&self, disk: &DiskId) {
        let deleted = self.disks.provisioner.delete(minutes(1), disk).await;
        deleted.unwrap_or_else(|error| panic!("delete: {}", text(&error)));
    }

    pub(crate) async fn attach(&self, disk: &DiskId, node: &InstanceId) -> Disk {
        let attached = self.disks.attacher.attach(minutes(1), disk, node).await;
        attached.unwrap_or_else(|error| panic!("attach: {}", text(&error)))
    }

    pub(crate) async fn detach(&self, disk: &DiskId, node: &InstanceId) {
        let detached = self.disks.detacher.detach(minutes(1), disk, node).await;
        detached.unwrap_or_else(|error| panic!("detach: {}", text(&error)));
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
        let lasts = format!("{seconds}s");
        let fault = json!({"action": "DescribeDisks", "for": lasts, "kind": "no-rows"});
        self.configure(&json!({"faults": [fault]}));
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
        let created = self
            .disks
            .snapshotter
            .create(minutes(5), &new_snapshot(name, source))
            .await;
        created.unwrap().id
    }
}

/// Repeats a call as the sidecars do: after a growing pause, unless the error is final.
pub(crate) async fn with_retries<T, F>(call: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    use FailureKind::{Aborted, DeadlineExceeded, Unavailable};
    let mut pause = Duration::from_secs(1);
    loop {
        match call().await {
            Err(error)
                if [Aborted, DeadlineExceeded, Unavailable].contains(&error.failure_kind())
                    && pause <= Duration::from_secs(512) =>
            {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            outcome => return outcome,
        }
    }
}

fn cloud(flags: &[&str]) -> Cloud {
    let nodes = "--nodes=i-one=cn-beijing-a,i-two=cn-beijing-a,i-far=cn-beijing-b";
    cloud_of(nodes, flags)
}

fn cloud_of(nodes: &str, flags: &[&str]) -> Cloud {
    let options = Options::from_flags([nodes].into_iter().chain(flags.iter().copied()));
    let clock = TokioClock::starting_at(Timestamp::from_second(1_800_000_000).unwrap());
    Cloud::in_memory(&options.unwrap(), Arc::new(clock))
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
