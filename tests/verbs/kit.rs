//! A cloud, the verbs over it, and short words for what the tests ask of both.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use diskplugin::base::{Deadline, Tasks, TokioClock};
use diskplugin::cloud::Ecs;
use diskplugin::disk::{DiskServices, NewDisk, NewSnapshot, Purpose};
use diskplugin::model::{
    Bytes, Category, ClientToken, DiskId, Gib, InstanceId, SizeRange, SnapshotId, Tags, ZoneId,
};
use diskplugin::sim::{Cloud, ExistingDisk, Options};

use crate::retrying_cloud::RetryingCloud;

/// By how much the poll that shows the end of an operation may be late if that takes whole seconds.
pub(crate) const LATE: Duration = Duration::from_millis(125);

/// A fake cloud with two nodes in zone a and one in zone b, and the verbs of one process over it.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) cloud: Cloud,
    pub(crate) disks: Arc<DiskServices>,
}

impl Stage {
    /// Every answer of the cloud, faults too, reaches the verbs as it is.
    pub(crate) fn new(flags: &[&str]) -> Self {
        let cloud = cloud(flags);
        let disks = process(Arc::new(cloud.ecs()), "test");
        Self { cloud, disks }
    }

    /// The driver has run for two hours: names from before its start do not come back any more.
    pub(crate) async fn settled(flags: &[&str]) -> Self {
        let stage = Self::new(flags);
        tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
        stage.lead().await;
        stage
    }

    /// The driver has ordered for a while, so that no other replica has.
    pub(crate) async fn lead(&self) {
        for _ in 0..4 {
            let none = "d-none".parse().unwrap();
            let now = Deadline::after(Duration::ZERO);
            let refused = self.disks.attacher.detach(now, &none, &one()).await;
            refused.unwrap_err();
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
        self.cloud.clear_calls();
    }

    /// With so many nodes, `i-0` and on, in zone a, which take disks side by side or not.
    pub(crate) fn crowd(nodes: usize, flags: &[&str]) -> Self {
        let nodes: Vec<_> = (0..nodes).map(|n| format!("i-{n}=cn-beijing-a")).collect();
        let cloud = cloud_of(&format!("--nodes={}", nodes.join(",")), flags);
        let disks = process(Arc::new(cloud.ecs()), "test");
        Self { cloud, disks }
    }

    /// With so many nodes, `i-0` and on, in zone a, of a type that shares disks.
    pub(crate) fn sharers(nodes: usize, flags: &[&str]) -> Self {
        let nodes: Vec<_> = (0..nodes)
            .map(|n| format!("i-{n}=cn-beijing-a=ecs.g8i.large"))
            .collect();
        let cloud = cloud_of(&format!("--nodes={}", nodes.join(",")), flags);
        let disks = process(Arc::new(cloud.ecs()), "test");
        Self { cloud, disks }
    }

    /// Calls are repeated as the client repeats them.
    pub(crate) fn patient(flags: &[&str]) -> Self {
        let cloud = cloud(flags);
        let disks = process(Arc::new(RetryingCloud::new(&cloud)), "test");
        Self { cloud, disks }
    }

    /// The same, with calls paced and repeated as the client does it.
    pub(crate) fn patient_crowd(nodes: usize, flags: &[&str]) -> Self {
        let nodes: Vec<_> = (0..nodes).map(|n| format!("i-{n}=cn-beijing-a")).collect();
        let cloud = cloud_of(&format!("--nodes={}", nodes.join(",")), flags);
        let disks = process(Arc::new(RetryingCloud::new(&cloud)), "test");
        Self { cloud, disks }
    }

    /// The same cloud after the driver was killed and started again.
    pub(crate) fn restarted(&self) -> Arc<DiskServices> {
        process(Arc::new(self.cloud.ecs()), "test")
    }

    /// Another cluster's driver on the same cloud.
    pub(crate) fn neighbour(&self) -> Arc<DiskServices> {
        process(Arc::new(self.cloud.ecs()), "neighbour")
    }

    pub(crate) fn configure(&self, patch: &Value) {
        self.cloud.configure(patch).unwrap();
    }

    /// The next call of the action goes wrong like this.
    pub(crate) fn fault(&self, action: &str, kind: &Value) {
        self.faults(action, 1, kind);
    }

    /// So many of the next calls do.
    pub(crate) fn faults(&self, action: &str, times: u64, kind: &Value) {
        let fault = json!({"action": action, "times": times, "kind": kind});
        // A list that is equal to the one before would go on with its count.
        self.configure(&json!({"faults": []}));
        self.configure(&json!({"faults": [fault]}));
    }

    /// How often the action was called.
    pub(crate) fn calls(&self, action: &str) -> u64 {
        self.cloud
            .counts()
            .get(action)
            .map_or(0, |count| count.calls)
    }

    /// All data disks as they are, not as they are described.
    pub(crate) fn rows(&self) -> Vec<Value> {
        let state = self.cloud.state();
        let rows = state["disks"].as_array().unwrap().iter();
        rows.filter(|row| row["system"] != true).cloned().collect()
    }

    /// With the system disk of a node, which every account with nodes has: responses that do not return even that one
    /// prove nothing.
    pub(crate) fn with_system_disk(self) -> Self {
        self.cloud.add_disk(&ExistingDisk {
            category: "cloud_essd".to_owned(),
            zone: Some("cn-beijing-a".to_owned()),
            system: true,
            portable: false,
            instance: Some("i-one".to_owned()),
        });
        self
    }

    /// The disk as it is; null when it is not there.
    pub(crate) fn row(&self, disk: &DiskId) -> Value {
        let rows = self.rows();
        let row = rows.into_iter().find(|row| row["id"] == disk.as_str());
        row.unwrap_or_default()
    }

    /// The only disk that there is.
    pub(crate) fn only_disk(&self) -> DiskId {
        let rows = self.rows();
        assert_eq!(rows.len(), 1, "{rows:#?}");
        rows[0]["id"].as_str().unwrap().parse().unwrap()
    }

    /// Who holds the disk and how far the attachment is, as it is.
    pub(crate) fn holders(&self, disk: &DiskId) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let row = self.row(disk);
        let held = row["attachments"].as_array().into_iter().flatten();
        held.map(|a| (text(&a["instance"]), text(&a["state"])))
            .collect()
    }

    /// A disk that is ready, created through the verbs.
    pub(crate) async fn disk(&self, name: &str) -> DiskId {
        self.disks
            .provisioner
            .create(minutes(5), &wanted(name))
            .await
            .unwrap()
            .id
    }

    /// A disk that somebody else made, with or without tags.
    pub(crate) async fn foreign(&self, tags: Tags) -> DiskId {
        let request = diskplugin::cloud::CreateDisk {
            zone: Some(zone("a")),
            category: Category::CloudEssd,
            performance_level: None,
            provisioned_iops: None,
            bursting: false,
            multi_attach: false,
            resource_group: None,
            size: Gib(20),
            name: "by-hand".to_owned(),
            snapshot: None,
            encrypted: false,
            kms_key: None,
            tags,
            token: ClientToken::derive("test", ["by-hand"]),
        };
        let made = self.cloud.ecs().create_disk(minutes(1), &request).await;
        made.unwrap()
    }

    /// A disk that belongs to no zone.
    pub(crate) fn regional(&self) -> DiskId {
        self.cloud.add_disk(&ExistingDisk {
            category: "cloud_regional_disk_auto".to_owned(),
            zone: None,
            system: false,
            portable: true,
            instance: None,
        })
    }

    /// A disk that several nodes can hold.
    pub(crate) async fn shared(&self) -> DiskId {
        let request = diskplugin::cloud::CreateDisk {
            zone: Some(zone("a")),
            category: Category::CloudEssd,
            performance_level: None,
            provisioned_iops: None,
            bursting: false,
            multi_attach: true,
            resource_group: None,
            size: Gib(20),
            name: "shared".to_owned(),
            snapshot: None,
            encrypted: false,
            kms_key: None,
            tags: Tags::new(),
            token: ClientToken::derive("test", ["shared"]),
        };
        let made = self.cloud.ecs().create_disk(minutes(1), &request).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        made.unwrap()
    }

    /// A snapshot that is complete.
    pub(crate) async fn snapshot(&self, name: &str, source: &DiskId) -> SnapshotId {
        let made = self
            .disks
            .snapshotter
            .create(minutes(5), &new_snapshot(name, source))
            .await;
        made.unwrap().id
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

pub(crate) fn process(ecs: Arc<dyn Ecs>, cluster: &str) -> Arc<DiskServices> {
    let cluster = cluster.parse().unwrap();
    Arc::new(DiskServices::new(ecs, cluster, &Tasks::default()))
}

pub(crate) fn minutes(minutes: u64) -> Deadline {
    seconds(60 * minutes)
}

pub(crate) fn seconds(seconds: u64) -> Deadline {
    Deadline::after(Duration::from_secs(seconds))
}

pub(crate) fn one() -> InstanceId {
    "i-one".parse().unwrap()
}

pub(crate) fn two() -> InstanceId {
    "i-two".parse().unwrap()
}

pub(crate) fn zone(letter: &str) -> ZoneId {
    format!("cn-beijing-{letter}").parse().unwrap()
}

/// At least so many GiB.
pub(crate) fn gib(least: u32) -> SizeRange {
    SizeRange {
        required: Some(Gib(least).bytes()),
        limit: None,
    }
}

/// At least and at most so many GiB.
pub(crate) fn between(least: u32, most: u32) -> SizeRange {
    SizeRange {
        required: Some(Bytes(Gib(least).bytes().0)),
        limit: Some(Gib(most).bytes()),
    }
}

/// A blank ESSD of 20 GiB in zone a.
pub(crate) fn wanted(name: &str) -> NewDisk {
    NewDisk {
        name: name.to_owned(),
        size: gib(20),
        categories: vec![Category::CloudEssd],
        levels: Vec::new(),
        places: vec![zone("a").into()],
        snapshot: None,
        clone_of: None,
        encrypted: false,
        kms_key: None,
        provisioned_iops: 0,
        bursting: false,
        multi_attach: false,
        resource_group: None,
        tags: Tags::new(),
        origin: Tags::new(),
    }
}

/// The same of whatever category is in stock.
pub(crate) fn available(name: &str) -> NewDisk {
    NewDisk {
        categories: Category::CREATABLE.to_vec(),
        ..wanted(name)
    }
}

pub(crate) fn new_snapshot(name: &str, source: &DiskId) -> NewSnapshot {
    NewSnapshot {
        name: name.to_owned(),
        source: source.clone(),
        retention_days: None,
        resource_group: None,
        tags: Tags::new(),
        purpose: Purpose::Request,
    }
}

/// The whole text of a failure as its caller gets it: name, causes, what to do.
pub(crate) fn text(error: &diskplugin::disk::Error) -> String {
    let (failure, chain) = (error.failure(), diskplugin::base::chain::chain(error));
    format!("{}: {chain}; {}", failure.name(), failure.advice())
}
