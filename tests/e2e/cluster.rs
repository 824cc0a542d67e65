//! All of it together: the control plane, the node, the cloud with its loop devices, and the driver in it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use crate::common::fake::Fake;
use crate::door::{Door, Rename, Room};
use crate::images;
use crate::install;
use crate::keys::SERVICE;
use crate::log_lines::select_lines;
use crate::network::{self, CLOUD};
use crate::outside::{self, SOCKET};
use crate::plane::Plane;
use crate::worker::{self, Worker};

/// The instance that the node is.
pub(crate) const INSTANCE: &str = "i-worker";
/// That of a second one.
pub(crate) const SECOND_INSTANCE: &str = "i-second";
pub(crate) const TYPE: &str = "ecs.g8i.large";

/// The zone of both nodes.
const ZONE: &str = "cn-beijing-b";

/// A cluster with the driver in it. Dropping it ends everything that is not a container.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) plane: Plane,
    pub(crate) cloud: Fake,
    pub(crate) worker: Worker,
    /// The second one, where a scenario wanted it.
    pub(crate) second: OnceCell<Worker>,
    _doors: JoinSet<()>,
}

impl Cluster {
    /// Starts one, and waits until the driver is there.
    pub(crate) async fn start() -> Self {
        let directory = directory();
        network::up().await;
        worker::prepare(&directory).await;
        let (plane, archives, cloud) = tokio::join!(Plane::start(), images::pack(), cloud(&directory));
        let mut doors = JoinSet::new();
        // Instead of kube-proxy: pods need no other service.
        for (door, room) in [
            (Door::tcp((SERVICE, 443).into()).await, &plane.server),
            (Door::socket(&directory.join(SOCKET)), &plane.server),
        ] {
            doors.spawn(door.lead(Room::Tcp(address(room))));
        }
        // The metadata of an instance are by one path for all that the chart is told.
        let second = Rename {
            of: |address| network::SECOND.has_pod(address),
            from: "/imds/i-worker/",
            to: "/imds/i-second/",
        };
        let door = Door::tcp(CLOUD).await;
        doors.spawn(door.lead_with(Room::Tcp(address(&cloud.url)), Some(second)));
        let worker = Worker::start(&directory, &outside::cgroup(&directory), &plane).await;
        let cluster = Self {
            plane,
            cloud,
            worker,
            second: OnceCell::new(),
            _doors: doors,
        };
        for archive in &archives {
            cluster.worker.import(archive).await;
        }
        install::chart(&cluster).await;
        cluster.worker.ready(&cluster.plane).await;
        install::ready(&cluster).await;
        cluster
    }

    /// Adds a second node, and waits until the driver is there too.
    pub(crate) async fn grow(&self) -> &Worker {
        let order = json!({"op": "add", "id": SECOND_INSTANCE, "zone": ZONE, "type": TYPE});
        self.cloud.instance(order).await;
        let directory = &self.worker.directory;
        let worker = Worker::second(directory, &outside::cgroup(directory), &self.plane).await;
        for archive in &images::pack().await {
            worker.import(archive).await;
        }
        worker.ready(&self.plane).await;
        assert!(self.second.set(worker).is_ok(), "there is one already");
        let worker = self.second.get().expect("it was just put there");
        install::registered(self, worker.name).await;
        worker
    }

    /// All nodes that there are.
    pub(crate) fn workers(&self) -> impl Iterator<Item = &Worker> {
        std::iter::once(&self.worker).chain(self.second.get())
    }

    /// Where the fake cloud has its disks and its links to devices. It is below what the node plugin sees of the
    /// machine.
    pub(crate) fn devices(&self) -> PathBuf {
        devices(&self.worker.directory)
    }

    /// What the parts said that work on volumes.
    pub(crate) async fn logs(&self, words: &[String]) -> String {
        let mut all = self.plane.logs().await;
        for worker in self.workers() {
            all.extend(worker.logs().await);
        }
        all.extend(install::logs(self).await);
        let parts = all
            .iter()
            .map(|(name, text)| format!("=== {name}\n{}\n", select_lines(text, words)));
        parts.collect()
    }
}

/// The directory that the place was made with.
pub(crate) fn directory() -> PathBuf {
    let directory = std::env::var_os(outside::INSIDE).expect("this is the inner process");
    PathBuf::from(directory)
}

fn devices(directory: &Path) -> PathBuf {
    worker::kubelet_dir(directory).join("plugins/fake-cloud")
}

async fn cloud(directory: &Path) -> Fake {
    let devices = devices(directory);
    std::fs::create_dir_all(devices.parent().expect("it is below kubelet's")).expect("it can be made");
    let cloud = Fake::start_with_pdeathsig(&[
        "--create-delay=500ms",
        "--attach-delay=1s",
        "--detach-delay=500ms",
        "--snapshot-delay=1s",
        "--back-with=loop",
        // More than this type takes: the specs of the storage suite that run at once must not wait for each other.
        "--disk-quantity=33",
        &format!("--device-dir={}", devices.display()),
    ])
    .await;
    let order = json!({"op": "add", "id": INSTANCE, "zone": ZONE, "type": TYPE});
    cloud.instance(order).await;
    cloud
}

fn address(url: &str) -> SocketAddr {
    let (_, address) = url.split_once("://").expect("a URL has a scheme");
    address.trim_end_matches('/').parse().expect("an address and a port")
}
