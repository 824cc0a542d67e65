//! A fake cloud whose time the test moves, and one way to call it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use diskplugin::base::{Clock, Deadline};
use diskplugin::cloud::credential::Credentials;
use diskplugin::cloud::sign::Scheme;
use diskplugin::cloud::transport::{Settings, Transport};
use diskplugin::cloud::{
    AttachDisk, Client, CreateDisk, CreateSnapshot, DescribeDisks, DescribeSnapshots, DetachDisk,
    Ecs, Error, Kind, Result,
};
use diskplugin::model::{
    Category, ClientToken, Disk, DiskId, Gib, InstanceId, Snapshot, SnapshotId, Tags, ZoneId,
};
use diskplugin::sim::{Cloud, Options};
use jiff::Timestamp;
use serde_json::Value;
use wiremock::MockServer;

use crate::wiremock_cloud;

pub(crate) const ZONE: &str = "cn-beijing-a";
pub(crate) const FAR_ZONE: &str = "cn-beijing-b";

/// An implementation of the contract.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Face {
    Memory,
    Http(Scheme),
}

impl Face {
    pub(crate) const HTTP_V1: Self = Self::Http(Scheme::V1);
    pub(crate) const HTTP_V3: Self = Self::Http(Scheme::V3);
}

/// The time of a fake cloud and of the client that signs for it.
#[derive(Debug)]
struct Time(Mutex<Timestamp>);

impl Clock for Time {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// A fake cloud with two instances in one zone and a third one in another, of a type that takes ESSDs
/// and AutoPL disks only.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) ecs: Arc<dyn Ecs>,
    pub(crate) cloud: Cloud,
    /// Where mocks are added beside the fake cloud; none in memory.
    pub(crate) server: Option<MockServer>,
    time: Arc<Time>,
}

impl World {
    pub(crate) async fn open(face: Face) -> Self {
        let nodes = format!("--nodes=i-one={ZONE},i-two={ZONE},i-far={FAR_ZONE}=ecs.g7.large");
        let options = Options::from_flags([nodes.as_str()]).unwrap();
        // Not a whole second: the wire carries no fractions.
        let start = "2026-01-15T08:00:00.25Z".parse().unwrap();
        let time = Arc::new(Time(Mutex::new(start)));
        let clock: Arc<dyn Clock> = Arc::clone(&time) as _;
        let cloud = Cloud::in_memory(&options, Arc::clone(&clock));
        let (server, ecs) = match face {
            Face::Memory => (None, Arc::new(cloud.ecs()) as Arc<dyn Ecs>),
            Face::Http(scheme) => {
                let server = wiremock_cloud::start(&cloud, &options).await;
                let ecs = client(&server.uri(), scheme, clock, &options);
                (Some(server), ecs)
            }
        };
        Self {
            ecs,
            cloud,
            server,
            time,
        }
    }

    /// Lets time pass.
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

    /// How many disks there really are.
    pub(crate) fn disks(&self) -> usize {
        self.cloud.state()["disks"].as_array().unwrap().len()
    }

    /// How many snapshots there really are.
    pub(crate) fn snapshots(&self) -> usize {
        self.cloud.state()["snapshots"].as_array().unwrap().len()
    }

    /// How often an action was called.
    pub(crate) fn calls(&self, action: &str) -> u64 {
        self.cloud
            .counts()
            .get(action)
            .map_or(0, |count| count.calls)
    }
}

/// The real client of a fake cloud.
pub(crate) fn client(
    endpoint: &str,
    scheme: Scheme,
    clock: Arc<dyn Clock>,
    options: &Options,
) -> Arc<dyn Ecs> {
    let key = Credentials::new(
        options.access_key_id.expose(),
        options.access_key_secret.expose(),
    );
    let transport = Transport::new(Settings {
        endpoint: endpoint.to_owned(),
        region: options.region.parse().unwrap(),
        scheme,
        credentials: Arc::new(key),
        clock,
    });
    Arc::new(Client::new(transport.unwrap()))
}

pub(crate) fn soon() -> Deadline {
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

/// A 20 GiB ESSD of this name; the name makes the token.
pub(crate) fn essd(name: &str) -> CreateDisk {
    CreateDisk {
        zone: Some(zone(ZONE)),
        category: Category::CloudEssd,
        performance_level: None,
        provisioned_iops: None,
        bursting: false,
        multi_attach: false,
        resource_group: None,
        size: Gib(20),
        name: name.to_owned(),
        snapshot: None,
        encrypted: false,
        kms_key: None,
        tags: Tags::new(),
        token: ClientToken::derive("CreateDisk", [name]),
    }
}

pub(crate) fn cut(disk: &DiskId, name: &str) -> CreateSnapshot {
    CreateSnapshot {
        disk: disk.clone(),
        name: name.to_owned(),
        retention_days: None,
        resource_group: None,
        tags: Tags::new(),
        token: ClientToken::derive("CreateSnapshot", [name]),
    }
}

pub(crate) fn onto(disk: &DiskId, instance: &str) -> AttachDisk {
    AttachDisk {
        disk: disk.clone(),
        instance: node(instance),
        force: false,
        delete_with_instance: false,
    }
}

pub(crate) fn off(disk: &DiskId, instance: &str) -> DetachDisk {
    DetachDisk {
        disk: disk.clone(),
        instance: node(instance),
        delete_with_instance: false,
    }
}

/// A new 20 GiB ESSD.
pub(crate) async fn made(ecs: &dyn Ecs, name: &str) -> DiskId {
    ecs.create_disk(soon(), &essd(name)).await.unwrap()
}

/// The disk as it is described; none when no row comes.
pub(crate) async fn seen(ecs: &dyn Ecs, disk: &DiskId) -> Option<Disk> {
    let query = DescribeDisks {
        ids: Some(vec![disk.clone()]),
        ..DescribeDisks::default()
    };
    let page = ecs.describe_disks(soon(), &query).await.unwrap();
    assert!(page.rows.len() <= 1 && page.next.is_none(), "{page:?}");
    page.rows.into_iter().next()
}

/// The snapshot as it is described; none when no row comes.
pub(crate) async fn seen_snapshot(ecs: &dyn Ecs, snapshot: &SnapshotId) -> Option<Snapshot> {
    let query = DescribeSnapshots {
        ids: Some(vec![snapshot.clone()]),
        ..DescribeSnapshots::default()
    };
    let page = ecs.describe_snapshots(soon(), &query).await.unwrap();
    assert!(page.rows.len() <= 1 && page.next.is_none(), "{page:?}");
    page.rows.into_iter().next()
}

/// The refusal, which must be of this kind.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(outcome: Result<T>, kind: Kind) -> Error {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    error
}
