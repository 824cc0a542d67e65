//! The shared cluster: control plane, fake cloud, release, and the controller's first pod.

use std::path::PathBuf;

use tokio::sync::Mutex;
use tonic::transport::Channel;

use crate::cloud;
use crate::common::csi::try_connect;
use crate::common::fake::Fake;
use crate::log_lines::select_lines;
use crate::machine::{Machine, PLAIN, SHARING};
use crate::path::{core, grouped};
use crate::plane::{NAMESPACE, Plane};
use crate::release::{NAME as RELEASE, Release, SPEC};
use crate::replica::Replica;
use crate::wait::until;

/// Nodes have no kubelet that sends heartbeats.
const GRACE_PERIOD: &str = "24h";

/// A cluster with the driver. Dropping it terminates everything.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) plane: Plane,
    pub(crate) cloud: Fake,
    pub(crate) release: Release,
    /// The running pod of the controller.
    pub(crate) replica: Mutex<Option<Replica>>,
    /// The file of instance types that is mounted into the pods of nodes.
    pub(crate) types: PathBuf,
}

impl Cluster {
    /// Starts a cluster, and waits until the first pod is the leader.
    pub(crate) async fn start() -> Self {
        let (plane, cloud) = tokio::join!(Plane::start(GRACE_PERIOD), cloud::start());
        let release = Release::install(&plane, &cloud, &SPEC).await;
        let first = release.start(&plane, 0).await;
        let types = plane.directory("instance-types").join("instance-types.json");
        let cluster = Self {
            plane,
            cloud,
            release,
            replica: Mutex::new(Some(first)),
            types,
        };
        until("there is a leader", async || cluster.leader().await).await;
        cluster.wait_for_instance_types().await;
        cluster
    }

    /// Waits until the controller has published the attachment limits of the first machines, and writes them where
    /// kubelet mounts them into the pods of all later ones.
    async fn wait_for_instance_types(&self) {
        let mut first = Vec::new();
        for (name, kind) in [("first-plain", PLAIN), ("first-sharing", SHARING)] {
            first.push(Machine::join((self, &self.release), "none", name, ("a", kind)).await);
        }
        let path = core(NAMESPACE, &format!("configmaps/{RELEASE}-diskplugin-instance-types"));
        let content = until("the ConfigMap has the attachment limits of both types", async || {
            let map = self.plane.api.get(&path).await?;
            let content = map["data"]["instance-types.json"].as_str()?;
            [PLAIN, SHARING]
                .iter()
                .all(|kind| content.contains(kind))
                .then(|| content.to_owned())
        })
        .await;
        std::fs::write(&self.types, content).expect("the directory can be written");
        for machine in first {
            machine.leave(self).await;
        }
    }

    /// A connection to the driver of the running pod.
    pub(crate) async fn connect(&self) -> Channel {
        let running = self.replica.lock().await;
        let socket = running.as_ref().expect("a pod runs").socket();
        try_connect(&socket).await.expect("the driver accepts connections")
    }

    /// The pod that holds the Lease, if any.
    pub(crate) async fn leader(&self) -> Option<String> {
        let lease = self.plane.api.get(&lease_path()).await?;
        let holder = lease["spec"]["holderIdentity"].as_str()?;
        (!holder.is_empty()).then(|| holder.to_owned())
    }

    /// The logs of all components, reduced to the lines that contain one of the words, and their last lines.
    pub(crate) async fn logs(&self, words: &[String]) -> String {
        let mut all = self.plane.logs().await;
        if let Some(replica) = self.replica.lock().await.as_ref() {
            let containers = replica.containers.iter();
            all.extend(containers.map(|c| {
                (
                    format!("{}/{} ({} restarts)", replica.name, c.name, c.restarts()),
                    c.logs(),
                )
            }));
        }
        let parts = all
            .iter()
            .map(|(name, text)| format!("=== {name}\n{}\n", select_lines(text, words)));
        parts.collect()
    }
}

/// The API path of the Lease of the controller.
pub(crate) fn lease_path() -> String {
    let lease = "leases/diskplugin-csi-example-controller";
    grouped("coordination.k8s.io", NAMESPACE, lease)
}
