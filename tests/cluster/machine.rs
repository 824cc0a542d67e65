//! Nodes without kubelet: an instance of the cloud, what `diskplugin node` says of it, and the objects that kubelet
//! would make of that.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::api::text;
use crate::cluster::Cluster;
use crate::common::csi::{endpoint, info};
use crate::common::process::Start;
use crate::path::{storage, whole};
use crate::program::tied;
use crate::release::Release;

/// The driver's name; the chart's default.
pub(crate) const DRIVER: &str = "diskplugin.csi.example";
/// The label that keeps the pods of a scenario on its own machines.
pub(crate) const OF: &str = "example.com/scenario";
/// The type of machines, and one whose disks can be shared.
pub(crate) const PLAIN: &str = "ecs.g6.large";
pub(crate) const SHARING: &str = "ecs.g8i.large";

/// A node, and the instance that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) instance: String,
    /// How many volumes the driver says it takes.
    pub(crate) volumes: i64,
}

impl Machine {
    /// Makes an instance of this type in a zone of this letter, and lets it join the cluster for one scenario, with the
    /// node's pod of a release on it.
    pub(crate) async fn join(
        (cluster, release): (&Cluster, &Release),
        scenario: &str,
        name: &str,
        (letter, kind): (&str, &str),
    ) -> Self {
        let instance = format!("i-{}", name.replace('-', ""));
        let zone = format!("cn-beijing-{letter}");
        let order = json!({"op": "add", "id": instance, "zone": zone, "type": kind});
        cluster.cloud.instance(order).await;
        let mut machine = Self {
            name: name.to_owned(),
            instance,
            volumes: 0,
        };
        let (volumes, segments) = machine.node_info(cluster, release).await;
        machine.volumes = volumes;
        let driver = release.driver.as_str();
        machine
            .register(cluster, (scenario, kind, driver), &segments)
            .await;
        machine
    }

    /// What the node's pod of a release says of it: how many volumes it takes, and its topology.
    pub(crate) async fn node_info(
        &self,
        cluster: &Cluster,
        release: &Release,
    ) -> (i64, Map<String, Value>) {
        let directory = cluster.plane.directory(&self.name);
        let socket = directory.join("csi.sock");
        let node = node(cluster, &release.node, &directory, &self.instance);
        let (_node, channel) = node.ready(&socket).await;
        let info = info(&channel).await.expect("a node knows itself");
        assert_eq!(self.instance, info.node_id);
        let topology = info.accessible_topology.expect("a node has a topology");
        let segments = topology.segments.into_iter();
        let segments = segments.map(|(key, value)| (key, value.into()));
        (info.max_volumes_per_node, segments.collect())
    }

    /// Makes the objects that kubelet makes.
    async fn register(
        &self,
        cluster: &Cluster,
        (scenario, kind, driver): (&str, &str, &str),
        segments: &Map<String, Value>,
    ) {
        let api = &cluster.plane.api;
        let mut labels = segments.clone();
        labels.insert("kubernetes.io/hostname".to_owned(), json!(self.name));
        labels.insert("kubernetes.io/os".to_owned(), json!("linux"));
        labels.insert("node.kubernetes.io/instance-type".to_owned(), json!(kind));
        labels.insert(OF.to_owned(), json!(scenario));
        let node = json!({"metadata": {
            "name": self.name,
            "labels": labels,
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        // The release's own pods are to stay what they are: with the machine they would go, and come anew.
        "spec": {"taints": [{"key": OF, "value": scenario, "effect": "NoSchedule"}]},
        });
        let node = api.create(&whole("nodes"), &node).await;
        let mut driver = json!({
            "name": driver,
            "nodeID": self.instance,
            "topologyKeys": segments.keys().collect::<Vec<_>>(),
        });
        if self.volumes > 0 {
            driver["allocatable"] = json!({"count": self.volumes});
        }
        // An owner, as kubelet says: without its node it goes.
        let csi = json!({
            "metadata": {"name": self.name, "ownerReferences": [{
                "apiVersion": "v1", "kind": "Node", "name": self.name, "uid": text(&node, "/metadata/uid"),
            }]},
            "spec": {"drivers": [driver]},
        });
        api.create(&storage("csinodes"), &csi).await;
        let room = json!({"cpu": "64", "memory": "256Gi", "pods": "500"});
        let status = json!({"status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        }});
        api.change(&whole(&format!("nodes/{}/status", self.name)), &status)
            .await;
    }

    /// Takes Node and instance away.
    pub(crate) async fn leave(&self, cluster: &Cluster) {
        cluster.plane.api.delete(&self.path()).await;
        let order = json!({"op": "remove", "id": self.instance});
        cluster.cloud.instance(order).await;
    }

    /// Says that it is there, if its Node is.
    pub(crate) async fn beat(&self, api: &Api, number: u64) {
        let beat = json!({"metadata": {"annotations": {"example.com/beat": number.to_string()}}});
        api.change_if_there(&self.path(), &beat).await;
    }

    /// The path of its Node.
    pub(crate) fn path(&self) -> String {
        whole(&format!("nodes/{}", self.name))
    }
}

/// The container of the DaemonSet, where its paths are below a directory.
fn node(cluster: &Cluster, template: &Value, directory: &Path, instance: &str) -> Start {
    let spec = &template["spec"]["containers"][0];
    let args = spec["args"]
        .as_array()
        .expect("the container has arguments");
    let below =
        |arg: &str, path: &str| arg.replacen(path, &format!("{}{path}", directory.display()), 1);
    let args = args.iter().filter_map(|arg| {
        let arg = arg.as_str().expect("an argument is a text");
        let (flag, _) = arg.split_once('=').unwrap_or((arg, ""));
        match flag {
            // The socket has to be found, registration has nobody to talk to, probes are tested elsewhere.
            "--endpoint" | "--registration-dir" | "--kubelet-socket" | "--http-address" => None,
            // Nothing is mounted here, and this machine may share no mounts.
            "--require-shared-mounts" => None,
            "--kubelet-dir" | "--state-dir" => Some(below(arg, "/var/")),
            "--instance-types-file" => Some(format!("{flag}={}", cluster.types.display())),
            _ => Some(arg.to_owned()),
        }
    });
    let args: Vec<String> = args.collect();
    for path in ["var/lib/kubelet", "var/lib/diskplugin"] {
        std::fs::create_dir_all(directory.join(path)).expect("the directory can be written");
    }
    let program = match spec["command"][0].as_str() {
        None => env!("CARGO_BIN_EXE_diskplugin"),
        Some("/diskplugin-node") => env!("CARGO_BIN_EXE_diskplugin-node"),
        Some(other) => panic!("{other}: say which program of ours that is"),
    };
    tied(Path::new(program)).args(args).args([
        endpoint(&directory.join("csi.sock")),
        cluster.cloud.metadata(instance),
    ])
}
