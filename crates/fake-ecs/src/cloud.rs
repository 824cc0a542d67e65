//! A running fake cloud: its state, its front ends and its background tasks.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::advance::{advance, populated};
use super::audit::Audit;
use super::clock::Clock;
use super::config::{Config, InvalidConfig};
use super::create_snapshot;
use super::credential::Keys;
use super::detach;
use super::existing_disk::{self, ExistingDisk};
use super::http::{HttpHandler, Server};
use super::instance::NodeSpec;
use super::instance_changes;
use super::log::{Count, Entry};
use super::loopdev::{LoopDevices, LoopError, RunCommand};
use super::options::{Backing, Options};
use super::runner::Runner;
use super::shared::Shared;
use super::world::{InitialState, World};

/// A fake cloud. Clones are handles to the same one.
#[derive(Debug, Clone)]
pub struct Cloud {
    shared: Arc<Shared>,
    keys: Keys,
    endpoint: Option<String>,
    running: Arc<Running>,
}

/// The server, devices and tasks of a fake cloud, which end with its last handle.
#[derive(Debug, Default)]
struct Running {
    server: Mutex<Option<Server>>,
    loops: Option<Arc<LoopDevices>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The fake cloud failed to free devices or to remove files.
#[derive(Debug, thiserror::Error)]
#[error("cannot free the devices of the fake cloud")]
pub struct CleanupError(#[source] LoopError);

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot attach backing loop devices")]
    Devices(#[source] LoopError),
    #[error("cannot serve the listener")]
    Listener(#[source] std::io::Error),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub id: String,
    pub zone: String,
    pub instance_type: String,
}

impl Cloud {
    /// A fake cloud in memory, without HTTP and without devices. `clock` is its time.
    #[must_use]
    pub fn in_memory(options: &Options, clock: Arc<dyn Clock>) -> Self {
        let mut initial_state = options.initial_state();
        initial_state.backed = false;
        Self::of(initial_state, options.keys(), clock)
    }

    fn of(initial_state: InitialState, keys: Keys, clock: Arc<dyn Clock>) -> Self {
        let world = populated(initial_state, clock.now());
        Self {
            shared: Arc::new(Shared::new(world, clock)),
            keys,
            endpoint: None,
            running: Arc::default(),
        }
    }

    /// A fake cloud that serves the API, the metadata of its instances (`/imds/ID/latest/…`) and
    /// the control API (`/_control/…`) on the listener.
    ///
    /// If loop devices back its disks, `commands` runs the commands, and the clock must advance with
    /// tokio's. Call [`Cloud::shutdown`] at the end; otherwise devices and files remain until the
    /// next start in the same directory.
    ///
    /// # Errors
    /// If the device directory is not usable or the listener cannot be served.
    pub async fn start(
        options: &Options,
        clock: Arc<dyn Clock>,
        commands: Arc<dyn RunCommand>,
        listener: TcpListener,
    ) -> Result<Self, StartError> {
        let mut cloud = Self::of(options.initial_state(), options.keys(), clock);
        let loops = match (options.back_with, &options.device_dir) {
            (Backing::Loop, Some(dir)) => Some(open(dir, commands).await?),
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
            tasks: TaskTracker::new(),
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
        self.running.tasks.spawn(runner.run());
    }

    /// The address of the API, for `--ecs-endpoint`. None in memory.
    #[must_use]
    pub fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    /// The address of an instance's metadata, for `--metadata-endpoint`. None in memory.
    #[must_use]
    pub fn metadata_endpoint(&self, instance: impl AsRef<str>) -> Option<String> {
        let endpoint = self.endpoint.as_deref()?;
        Some(format!("{endpoint}/imds/{}", instance.as_ref()))
    }

    /// The directory with the links to an instance's devices, for `--device-dir` of a node. None without devices.
    #[must_use]
    pub fn device_dir(&self, instance: impl AsRef<str>) -> Option<PathBuf> {
        let loops = self.running.loops.as_ref()?;
        Some(loops.node_dir(instance.as_ref()))
    }

    /// Stops serving, frees all devices and removes all files. Idempotent, on any clone.
    ///
    /// # Errors
    /// If devices or files remain; the next start in the same directory frees them.
    pub async fn shutdown(&self) -> Result<(), CleanupError> {
        let running = &self.running;
        let server = running.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(server);
        running.stop.cancel();
        running.tasks.close();
        running.tasks.wait().await;
        match &running.loops {
            Some(loops) => loops.close().await.map_err(CleanupError),
            None => Ok(()),
        }
    }

    /// The API over HTTP without a socket.
    #[must_use]
    pub fn http(&self) -> HttpHandler {
        HttpHandler::new(Arc::clone(&self.shared), self.keys.clone())
    }

    /// Mounts the fake cloud on a server, with a lower priority than all other mocks.
    #[cfg(feature = "wiremock")]
    pub async fn mount(&self, server: &::wiremock::MockServer) {
        crate::wiremock::mount(self.http(), server).await;
    }

    /// The ID and the secret of the access key that it accepts.
    #[must_use]
    pub fn access_key(&self) -> (&str, &str) {
        (self.keys.id.expose(), self.keys.secret.expose())
    }

    #[must_use]
    pub fn region(&self) -> String {
        self.shared.world().region.clone()
    }

    /// The time that determines the minute of a call.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.shared.now()
    }

    #[must_use]
    pub fn nodes(&self) -> Vec<Node> {
        let world = self.shared.world();
        let rows = world.instances.values();
        rows.map(|row| Node {
            id: row.id.clone(),
            zone: row.zone.clone(),
            instance_type: row.instance_type.clone(),
        })
        .collect()
    }

    /// The current state of all disks, snapshots and instances.
    #[must_use]
    pub fn state(&self) -> Value {
        let mut world = self.shared.world();
        advance(&mut world, self.shared.now());
        world.state()
    }

    /// The calls that are still in the log, oldest first.
    #[must_use]
    pub fn calls(&self) -> Vec<Entry> {
        self.shared.world().log.entries().cloned().collect()
    }

    /// The number of calls of each action.
    #[must_use]
    pub fn counts(&self) -> std::collections::BTreeMap<String, Count> {
        self.shared.world().log.counts().clone()
    }

    /// Totals of all calls: duplicates, calls per minute, calls after throttling.
    #[must_use]
    pub fn audit(&self) -> Audit {
        self.shared.world().log.tally.audit()
    }

    pub fn clear_calls(&self) {
        self.shared.world().log.clear();
    }

    #[must_use]
    pub fn config(&self) -> Config {
        self.shared.world().config.clone()
    }

    /// Changes the configuration with a JSON merge patch.
    ///
    /// # Errors
    /// If the result is not a valid configuration; nothing is changed then.
    pub fn configure(&self, patch: &Value) -> Result<(), InvalidConfig> {
        self.change(|world| {
            let config = world.config.patched(patch)?;
            world.configure(config);
            Ok(())
        })
    }

    /// Changes the state. Events that are due before and immediately after the change are executed.
    fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let now = self.shared.now();
        let mut world = self.shared.world();
        advance(&mut world, now);
        let changed = change(&mut world);
        advance(&mut world, now);
        drop(world);
        self.shared.wake();
        changed
    }

    /// Completes a detach that an injected fault keeps in `Detaching`.
    pub fn release(&self, disk: impl AsRef<str>) {
        self.change(|world| detach::release(world, disk.as_ref()));
    }

    /// Starts (`true`) or stops an instance. False if it does not exist.
    pub fn set_instance_power(&self, instance: impl AsRef<str>, on: bool) -> bool {
        self.change(|world| instance_changes::set_instance_power(world, instance.as_ref(), on))
    }

    pub fn add_instance(&self, spec: NodeSpec) -> String {
        self.change(|world| instance_changes::add_running_instance(world, spec))
    }

    /// Tags an instance. False if it does not exist.
    pub fn tag_instance(&self, instance: impl AsRef<str>, key: &str, value: &str) -> bool {
        self.change(|world| {
            let row = world.instances.get_mut(instance.as_ref());
            row.map(|row| row.tags.insert(key.to_owned(), value.to_owned()))
                .is_some()
        })
    }

    /// Adds a disk that the API does not create: a system disk, a subscription disk, or a disk that
    /// belongs to an instance.
    pub fn add_disk(&self, found: &ExistingDisk) -> String {
        self.change(|world| existing_disk::add(world, found))
    }

    /// Makes a snapshot fail, whatever its progress.
    pub fn fail_snapshot(&self, snapshot: impl AsRef<str>) {
        self.change(|world| create_snapshot::snapshot_failed(world, snapshot.as_ref()));
    }

    /// Removes an instance and detaches its disks. False if it does not exist.
    pub fn remove_instance(&self, instance: impl AsRef<str>) -> bool {
        self.change(|world| instance_changes::remove_instance(world, instance.as_ref()))
    }
}

async fn open(dir: &Path, commands: Arc<dyn RunCommand>) -> Result<Arc<LoopDevices>, StartError> {
    let loops = LoopDevices::open(dir, commands).await;
    loops.map(Arc::new).map_err(StartError::Devices)
}
