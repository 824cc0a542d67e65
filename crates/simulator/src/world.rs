//! The cloud and the controller process that is active at the moment.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use diskplugin::base::{Clock, Deadline, Tasks};
use diskplugin::csi::controller::{DriverLocation, Service};
use diskplugin::disk::DiskServices;
use diskplugin::model::{ClientToken, Tags, tag};
use ecs::credential::Credentials;
use ecs::sign::Scheme;
use ecs::{Client, CreateSnapshot, ServerClock, Settings};
use fake_ecs::{Cloud, ExistingDisk, Options, TokioClock};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::history::History;
use crate::plant::Plant;
use crate::schedule::{NODES, healthy};
use crate::transport::ProcessTransport;

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) cloud: Cloud,
    pub(crate) history: Arc<History>,
    pub(crate) plant: Option<Plant>,
    process: Mutex<Option<Process>>,
    /// Seconds by which the clock of the controller is wrong.
    skew: Arc<AtomicI64>,
    /// The snapshot that exists from the beginning.
    pub(crate) snapshot: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) service: Service,
    pub(crate) killed: CancellationToken,
    is_killed: Arc<AtomicBool>,
}

#[derive(Debug)]
struct SkewedClock {
    cloud: Cloud,
    skew: Arc<AtomicI64>,
}

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        let now = self.cloud.now();
        let skewed = now.checked_add(SignedDuration::from_secs(self.skew.load(Ordering::Relaxed)));
        skewed.unwrap_or(now)
    }
}

impl World {
    /// # Panics
    /// If the flags are invalid.
    pub(crate) async fn new(flags: &[String], plant: Option<Plant>) -> Self {
        let options = Options::from_flags(flags.iter().map(String::as_str)).expect("the flags are valid");
        let epoch = Timestamp::from_second(1_800_000_000).expect("a time in range");
        let cloud = Cloud::in_memory(&options, Arc::new(TokioClock::starting_at(epoch)));
        // Every account with instances has system disks. This one has a snapshot too.
        let disk = cloud.add_disk(&ExistingDisk {
            category: "cloud_essd".to_owned(),
            zone: Some("cn-beijing-a".to_owned()),
            system: true,
            portable: false,
            instance: Some(NODES[0].to_owned()),
        });
        cloud.configure(&healthy()).expect("the configuration is valid");
        let mut world = Self {
            cloud,
            history: Arc::new(History::new()),
            plant,
            process: Mutex::default(),
            skew: Arc::default(),
            snapshot: String::new(),
        };
        world.snapshot = world.create_snapshot(&disk).await;
        // The lag of reads passes.
        tokio::time::sleep(Duration::from_secs(60)).await;
        world.history = Arc::new(History::new());
        world
    }

    /// A snapshot of this cluster, which exists all the time: without any, the absence of a snapshot is never proven.
    async fn create_snapshot(&self, disk: &str) -> String {
        let request = CreateSnapshot {
            disk: disk.parse().expect("a disk"),
            name: "existing".to_owned(),
            retention_days: None,
            resource_group: None,
            tags: Tags::from([(tag::CLUSTER.to_owned(), "test".to_owned())]),
            token: ClientToken::derive("CreateSnapshot", ["existing"]),
        };
        let client = self.client(None, &Arc::default());
        let created = client.create_snapshot(Deadline::after(Duration::from_secs(60)), &request);
        created.await.expect("the cloud is healthy").to_string()
    }

    fn process_slot(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn process(&self) -> Option<Process> {
        self.process_slot().clone()
    }

    pub(crate) fn state(&self) -> Value {
        self.cloud.state()
    }

    pub(crate) fn set_skew(&self, seconds: i64) {
        self.skew.store(seconds, Ordering::Relaxed);
    }

    /// Starts a controller that holds the Lease from now on. All it knows is in the cloud.
    pub(crate) fn start(&self) {
        let is_killed = Arc::<AtomicBool>::default();
        let client = Arc::new(self.client(Some(Arc::clone(&self.history)), &is_killed));
        let tasks = Tasks::default();
        let disks = DiskServices::new(client, "test".parse().expect("a cluster"), &tasks);
        for node in NODES {
            disks.record_node(&node.parse().expect("an instance"));
        }
        let location = DriverLocation {
            region: "cn-beijing".parse().expect("a region"),
            zone: "cn-beijing-a".parse().ok(),
        };
        let service = Service::new(Arc::new(disks), location, tasks);
        *self.process_slot() = Some(Process {
            service,
            killed: CancellationToken::new(),
            is_killed,
        });
        self.history.record("controller started");
    }

    /// A client of the controller, or of an operator, whose calls are not recorded.
    pub(crate) fn client(&self, history: Option<Arc<History>>, is_killed: &Arc<AtomicBool>) -> Client {
        let transport = ProcessTransport::new(&self.cloud, history, is_killed);
        let (id, secret) = self.cloud.access_key();
        let clock = SkewedClock {
            cloud: self.cloud.clone(),
            skew: Arc::clone(&self.skew),
        };
        let settings = Settings {
            server: "http://memory".parse().expect("an endpoint"),
            region: self.cloud.region().parse().expect("a region"),
            scheme: Scheme::V1,
            credentials: Arc::new(Credentials::new(id, secret)),
            clock: ServerClock::new(Arc::new(clock)),
        };
        Client::over(Arc::new(transport), settings)
    }

    /// Kills it, whatever it awaits: its calls fail, and it sends nothing more.
    pub(crate) fn kill(&self) {
        if let Some(process) = self.process_slot().take() {
            process.is_killed.store(true, Ordering::Relaxed);
            process.killed.cancel();
            self.history.record("controller killed");
        }
    }

    pub(crate) async fn restart(&self, down: Duration) {
        self.kill();
        tokio::time::sleep(down).await;
        if self.process().is_none() {
            self.start();
        }
    }
}
