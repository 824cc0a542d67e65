//! The shared cluster: control plane, nodes, fake cloud with loop devices, and the release.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use crate::common::fake::Fake;
use crate::images;
use crate::install;
use crate::keys::SERVICE;
use crate::log_lines::select_lines;
use crate::network::{self, CLOUD};
use crate::outside::{self, SOCKET};
use crate::plane::Plane;
use crate::proxy::{Proxy, Rewrite, Target};
use crate::worker::{self, Worker};

/// The instance of the first node.
pub(crate) const INSTANCE: &str = "i-worker";
/// The instance of the second node.
pub(crate) const SECOND_INSTANCE: &str = "i-second";
pub(crate) const TYPE: &str = "ecs.g8i.large";

/// The zone of both nodes.
const ZONE: &str = "cn-beijing-b";

/// A cluster with the driver. Dropping it terminates everything except containers.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) plane: Plane,
    pub(crate) cloud: Fake,
    pub(crate) worker: Worker,
    /// Added by the first scenario that needs it.
    pub(crate) second: OnceCell<Worker>,
    _proxies: JoinSet<()>,
}

impl Cluster {
    /// Starts a cluster, and waits until the driver is registered. No node becomes not ready on a busy machine.
    pub(crate) async fn start() -> Self {
        Self::start_with("24h").await
    }

    /// As [`Self::start`], with this node monitor grace period.
    pub(crate) async fn start_with(node_monitor_grace_period: &str) -> Self {
        let directory = directory();
        network::up().await;
        worker::prepare(&directory).await;
        let plane = Plane::start(node_monitor_grace_period);
        let (plane, archives, cloud) = tokio::join!(plane, images::pack(), cloud(&directory));
        let mut proxies = JoinSet::new();
        // Pods need no other service.
        for proxy in [
            Proxy::tcp((SERVICE, 443).into()).await,
            Proxy::unix(&directory.join(SOCKET)),
        ] {
            proxies.spawn(proxy.run(Target::Tcp(address(&plane.server)), None));
        }
        // The chart configures one metadata path for all nodes.
        let second = Rewrite {
            applies_to: |address| network::SECOND.has_pod(address),
            from: "/imds/i-worker/",
            to: "/imds/i-second/",
        };
        let proxy = Proxy::tcp(CLOUD).await;
        proxies.spawn(proxy.run(Target::Tcp(address(&cloud.url)), Some(second)));
        let worker = Worker::start(&directory, &outside::cgroup(&directory), &plane).await;
        let cluster = Self {
            plane,
            cloud,
            worker,
            second: OnceCell::new(),
            _proxies: proxies,
        };
        for archive in &archives {
            cluster.worker.import(archive).await;
        }
        install::chart(&cluster).await;
        cluster.worker.ready(&cluster.plane).await;
        install::ready(&cluster).await;
        cluster
    }

    /// The second node, which is added and waited for at the first use.
    pub(crate) async fn second(&self) -> &Worker {
        if let Some(second) = self.second.get() {
            return second;
        }
        let request = json!({"op": "add", "id": SECOND_INSTANCE, "zone": ZONE, "type": TYPE});
        self.cloud.instance(request).await;
        let directory = &self.worker.directory;
        let worker = Worker::second(directory, &outside::cgroup(directory), &self.plane).await;
        for archive in &images::pack().await {
            worker.import(archive).await;
        }
        worker.ready(&self.plane).await;
        assert!(self.second.set(worker).is_ok(), "the second node exists already");
        let worker = self.second.get().expect("it was set above");
        install::registered(self, worker.name).await;
        worker
    }

    /// All nodes.
    pub(crate) fn workers(&self) -> impl Iterator<Item = &Worker> {
        std::iter::once(&self.worker).chain(self.second.get())
    }

    /// The directory of the fake cloud's disks and links to devices, below a host path of the node plugin.
    pub(crate) fn devices(&self) -> PathBuf {
        devices(&self.worker.directory)
    }

    /// The logs of all components, reduced to lines with these words and the last lines.
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

/// The directory of the sandbox.
pub(crate) fn directory() -> PathBuf {
    let directory = std::env::var_os(outside::INSIDE).expect("set by the outer process");
    PathBuf::from(directory)
}

fn devices(directory: &Path) -> PathBuf {
    worker::kubelet_dir(directory).join("plugins/fake-cloud")
}

async fn cloud(directory: &Path) -> Fake {
    let devices = devices(directory);
    std::fs::create_dir_all(devices.parent().expect("a path below kubelet's directory"))
        .expect("the directory can be written");
    let cloud = Fake::start_with_pdeathsig(&[
        "--create-delay=500ms",
        "--attach-delay=1s",
        "--detach-delay=500ms",
        "--snapshot-delay=1s",
        "--back-with=loop",
        // More than this type supports: parallel specs of the storage suite must not wait for each other.
        "--disk-quantity=33",
        &format!("--device-dir={}", devices.display()),
    ])
    .await;
    let request = json!({"op": "add", "id": INSTANCE, "zone": ZONE, "type": TYPE});
    cloud.instance(request).await;
    cloud
}

fn address(url: &str) -> SocketAddr {
    let (_, address) = url.split_once("://").expect("a URL has a scheme");
    address.trim_end_matches('/').parse().expect("an address and a port")
}
