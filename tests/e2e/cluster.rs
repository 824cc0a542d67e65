//! All of it together: the control plane, the node, the cloud with its loop devices, and the driver in it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::task::JoinSet;

use crate::chosen::chosen;
use crate::common::fake::Fake;
use crate::door::{Door, Room};
use crate::images;
use crate::install;
use crate::keys::SERVICE;
use crate::network::{self, CLOUD};
use crate::outside::{self, SOCKET};
use crate::plane::Plane;
use crate::worker::{self, Worker};

/// The instance that the node is.
pub(crate) const INSTANCE: &str = "i-worker";
/// Its type.
pub(crate) const TYPE: &str = "ecs.g8i.large";

/// A cluster with the driver in it. Dropping it ends everything that is not a container.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) plane: Plane,
    pub(crate) cloud: Fake,
    pub(crate) worker: Worker,
    _doors: JoinSet<()>,
}

impl Cluster {
    /// Starts one, and waits until the driver is there.
    pub(crate) async fn start() -> Self {
        let directory = directory();
        network::up().await;
        worker::prepare(&directory).await;
        let (plane, archives, cloud) =
            tokio::join!(Plane::start(), images::pack(), cloud(&directory));
        let mut doors = JoinSet::new();
        // Instead of kube-proxy: pods need no other service.
        for (door, room) in [
            (Door::tcp((SERVICE, 443).into()).await, &plane.server),
            (Door::tcp(CLOUD).await, &cloud.url),
            (Door::socket(&directory.join(SOCKET)), &plane.server),
        ] {
            doors.spawn(door.lead(Room::Tcp(address(room))));
        }
        let worker = Worker::start(&directory, &outside::cgroup(&directory), &plane);
        let cluster = Self {
            plane,
            cloud,
            worker,
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

    /// Where the fake cloud has its disks and its links to devices. It is below what the node plugin sees of the
    /// machine.
    pub(crate) fn devices(&self) -> PathBuf {
        devices(&self.worker.directory)
    }

    /// What the parts said that work on volumes.
    pub(crate) async fn said(&self, words: &[String]) -> String {
        let mut all = self.plane.said().await;
        all.extend(self.worker.said().await);
        all.extend(install::said(self).await);
        let parts = all
            .iter()
            .map(|(name, text)| format!("=== {name}\n{}\n", chosen(text, words)));
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
    std::fs::create_dir_all(devices.parent().expect("it is below kubelet's"))
        .expect("it can be made");
    let cloud = Fake::start_tied(&[
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
    let order = json!({"op": "add", "id": INSTANCE, "zone": "cn-beijing-b", "type": TYPE});
    cloud.instance(order).await;
    cloud
}

fn address(url: &str) -> SocketAddr {
    let (_, address) = url.split_once("://").expect("a URL has a scheme");
    address
        .trim_end_matches('/')
        .parse()
        .expect("an address and a port")
}
