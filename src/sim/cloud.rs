//! A fake cloud that runs: the world, its faces and whatever keeps it going.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use tokio_util::sync::CancellationToken;

use crate::base::{Clock, Tasks};
use crate::host::Exec;
use crate::model::{DiskId, InstanceId, SnapshotId, ZoneId};

use super::audit::Audit;
use super::config::{Config, InvalidConfig};
use super::ecs::SimEcs;
use super::found::FoundDisk;
use super::http::{HttpFace, Server};
use super::instance::NodeSpec;
use super::log::{Count, Entry};
use super::loopdev::{LoopError, Loops};
use super::options::{Backing, Options};
use super::runner::Runner;
use super::shared::Shared;
use super::world::{Genesis, World};

/// A fake cloud. Clones are handles on the same one.
#[derive(Debug, Clone)]
pub struct Cloud {
    shared: Arc<Shared>,
    endpoint: Option<String>,
    running: Arc<Running>,
}

/// What keeps a fake cloud going, and ends with its last handle.
#[derive(Debug, Default)]
struct Running {
    server: Mutex<Option<Server>>,
    loops: Option<Arc<Loops>>,
    tasks: Tasks,
    stop: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Devices or files that a fake cloud could not take away.
#[derive(Debug, thiserror::Error)]
#[error("devices of the fake cloud are left behind")]
pub struct LeftBehind(#[source] LoopError);

/// A fake cloud that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The devices cannot be had.
    #[error("cannot stand loop devices behind the disks")]
    Devices(#[source] LoopError),
    /// The listener cannot be served on.
    #[error("cannot serve on the listener")]
    Listener(#[source] std::io::Error),
}

/// An instance of the fake cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: InstanceId,
    /// Its zone.
    pub zone: ZoneId,
    /// Its type.
    pub instance_type: String,
}

impl Cloud {
    /// A fake cloud in memory, without a wire and without devices; time passes with the clock.
    #[must_use]
    pub fn in_memory(options: &Options, clock: Arc<dyn Clock>) -> Self {
        let mut genesis = options.genesis();
        genesis.backed = false;
        Self::of(genesis, clock)
    }

    fn of(genesis: Genesis, clock: Arc<dyn Clock>) -> Self {
        let world = World::new(genesis, clock.now());
        Self {
            shared: Arc::new(Shared::new(world, clock)),
            endpoint: None,
            running: Arc::default(),
        }
    }

    /// A fake cloud that serves the API, the metadata of its instances (`/imds/ID/latest/…`) and
    /// the control path (`/_control/…`) on the listener.
    ///
    /// With loop devices behind its disks, commands are run by `exec`; the clock must then run with
    /// tokio's. End it by [`Cloud::shutdown`], or devices and files stay until the next start in the
    /// same directory.
    ///
    /// # Errors
    /// When the directory of the devices cannot be had, or the listener cannot be served on.
    pub async fn start(
        options: &Options,
        clock: Arc<dyn Clock>,
        exec: Arc<dyn Exec>,
        listener: TcpListener,
    ) -> Result<Self, StartError> {
        let mut cloud = Self::of(options.genesis(), clock);
        let loops = match (options.back_with, &options.device_dir) {
            (Backing::Loop, Some(dir)) => Some(open(dir, exec).await?),
            _ => None,
        };
        let shared = Arc::clone(&cloud.shared);
        let server = Server::start(listener, shared, options.keys());
        let server = match server {
            Ok(server) => server,
            Err(error) => {
                if let Some(loops) = &loops {
                    loops.close().await.map_err(StartError::Devices)?;
                }
                return Err(StartError::Listener(error));
            }
        };
        cloud.endpoint = Some(server.uri());
        cloud.running = Arc::new(Running {
            server: Mutex::new(Some(server)),
            loops,
            tasks: Tasks::default(),
            stop: CancellationToken::new(),
        });
        cloud.run();
        Ok(cloud)
    }

    fn run(&self) {
        let Some(loops) = &self.running.loops else {
            return;
        };
        let runner = Runner {
            shared: Arc::clone(&self.shared),
            loops: Arc::clone(loops),
            tasks: self.running.tasks.clone(),
            stop: self.running.stop.clone(),
        };
        self.running.tasks.start(runner.run());
    }

    /// Where the API is served: for `--ecs-endpoint`. None in memory.
    #[must_use]
    pub fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    /// Where an instance finds its metadata: for `--metadata-endpoint`. None in memory.
    #[must_use]
    pub fn metadata_endpoint(&self, instance: &InstanceId) -> Option<String> {
        let endpoint = self.endpoint.as_deref()?;
        Some(format!("{endpoint}/imds/{instance}"))
    }

    /// Where an instance finds links to its devices: for `--device-dir` of a node. None without
    /// devices.
    #[must_use]
    pub fn device_dir(&self, instance: &InstanceId) -> Option<PathBuf> {
        let loops = self.running.loops.as_ref()?;
        Some(loops.node_dir(instance.as_str()))
    }

    /// Stops serving, frees all devices and removes all files. May be called again, on any clone.
    ///
    /// # Errors
    /// When devices or files stay behind; the next start in the same directory frees them.
    pub async fn shutdown(&self) -> Result<(), LeftBehind> {
        let running = &self.running;
        let server = running
            .server
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(server);
        running.stop.cancel();
        running.tasks.finish().await;
        match &running.loops {
            Some(loops) => loops.close().await.map_err(LeftBehind),
            None => Ok(()),
        }
    }

    /// The face in memory.
    #[must_use]
    pub fn ecs(&self) -> SimEcs {
        SimEcs::new(Arc::clone(&self.shared))
    }

    /// The face over HTTP without a socket; it takes the key of these options.
    #[must_use]
    pub fn http(&self, options: &Options) -> HttpFace {
        HttpFace::new(Arc::clone(&self.shared), options.keys())
    }

    /// The clock that it counts calls by.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.shared.clock()
    }

    /// Its instances.
    #[must_use]
    pub fn nodes(&self) -> Vec<Node> {
        let world = self.shared.world();
        let rows = world.instances.values();
        rows.map(|row| Node {
            id: row.id.parse().expect("checked when it was added"),
            zone: row.zone.parse().expect("checked when it was added"),
            instance_type: row.instance_type.clone(),
        })
        .collect()
    }

    /// All disks, snapshots and instances, as they are now.
    #[must_use]
    pub fn state(&self) -> Value {
        let mut world = self.shared.world();
        world.advance(self.shared.now());
        world.state()
    }

    /// The calls that the log still holds, the oldest first.
    #[must_use]
    pub fn calls(&self) -> Vec<Entry> {
        self.shared.world().log.entries().cloned().collect()
    }

    /// How often each action was called.
    #[must_use]
    pub fn counts(&self) -> std::collections::BTreeMap<String, Count> {
        self.shared.world().log.counts().clone()
    }

    /// What all calls add up to: doubles, calls a minute, calls in spite of throttling.
    #[must_use]
    pub fn audit(&self) -> Audit {
        self.shared.world().log.tally.audit()
    }

    /// Forgets all calls, and what they add up to.
    pub fn clear_calls(&self) {
        self.shared.world().log.clear();
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> Config {
        self.shared.world().config.clone()
    }

    /// Changes the configuration by a JSON merge patch.
    ///
    /// # Errors
    /// When the outcome would not be a configuration; nothing is changed then.
    pub fn configure(&self, patch: &Value) -> Result<(), InvalidConfig> {
        let now = self.shared.now();
        let mut world = self.shared.world();
        world.advance(now);
        let config = world.config.patched(patch)?;
        world.configure(config);
        Ok(())
    }

    /// Lets a detach that is stuck on purpose come to its end.
    pub fn release(&self, disk: &crate::model::DiskId) {
        self.shared.world().release(disk.as_str());
        self.shared.ring();
    }

    /// Starts (`true`) or stops an instance. False when it is not there.
    pub fn switch_instance(&self, instance: &InstanceId, on: bool) -> bool {
        let switched = self.shared.world().switch_instance(instance.as_str(), on);
        self.shared.ring();
        switched
    }

    /// Adds an instance that runs already.
    pub fn found_instance(&self, spec: NodeSpec) -> InstanceId {
        let id = self.shared.world().found_instance(spec);
        id.parse().expect("the world takes ids of instances only")
    }

    /// Tags an instance. False when it is not there.
    pub fn tag_instance(&self, instance: &InstanceId, key: &str, value: &str) -> bool {
        let mut world = self.shared.world();
        let there = world.instance(instance.as_str()).is_some();
        world.change_instance(instance.as_str(), |row| {
            row.tags.insert(key.to_owned(), value.to_owned());
        });
        there
    }

    /// Adds a disk that nobody makes through the API: a system disk, one of a subscription, one that
    /// belongs to an instance.
    pub fn found_disk(&self, found: &FoundDisk) -> DiskId {
        let id = self.shared.world().found_disk(found);
        super::convert::disk_id(&id)
    }

    /// Makes a snapshot fail, however far it is.
    pub fn fail_snapshot(&self, snapshot: &SnapshotId) {
        self.shared.world().snapshot_failed(snapshot.as_str());
    }

    /// Removes an instance; its disks come off. False when it is not there.
    pub fn remove_instance(&self, instance: &InstanceId) -> bool {
        let removed = self.shared.world().remove_instance(instance.as_str());
        self.shared.ring();
        removed
    }
}

async fn open(dir: &Path, exec: Arc<dyn Exec>) -> Result<Arc<Loops>, StartError> {
    let loops = Loops::open(dir, exec).await;
    loops.map(Arc::new).map_err(StartError::Devices)
}

impl World {
    pub(crate) fn state(&self) -> Value {
        let disks = self.disks.values().map(|row| {
            let mut value = json!(row);
            value["status"] = json!(row.status());
            value
        });
        json!({
            "now": self.now,
            "region": self.region,
            "zones": self.zones,
            "disks": disks.collect::<Vec<_>>(),
            "groups": self.groups.values().map(|row| json!(row)).collect::<Vec<_>>(),
            "snapshots": self.snapshots.values().map(|row| json!(row)).collect::<Vec<_>>(),
            "tasks": self.tasks.iter().map(|row| json!(row)).collect::<Vec<_>>(),
            "instances": self.instances.values().map(|row| json!(row)).collect::<Vec<_>>(),
        })
    }
}
