//! Nodes without kubelet: an instance of the cloud, the NodeGetInfo response of `diskplugin node`, and the objects that
//! kubelet would create from it.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::api::text;
use crate::cluster::Cluster;
use crate::common::csi::{endpoint, info};
use crate::common::process::Start;
use crate::path::{cluster_scoped, storage};
use crate::program::{of_driver, tied};
use crate::release::Release;

/// The driver name, the chart's default.
pub(crate) const DRIVER: &str = "diskplugin.csi.example";
/// The label that binds the pods of a scenario to its machines.
pub(crate) const OF: &str = "example.com/scenario";
/// The default instance type, and one that supports multi-attach disks.
pub(crate) const PLAIN: &str = "ecs.g6.large";
pub(crate) const SHARING: &str = "ecs.g8i.large";

/// A node and its instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) instance: String,
    /// The volume limit that the driver reports.
    pub(crate) volumes: i64,
}

impl Machine {
    /// Creates an instance of this type in a zone and joins it to the cluster for one scenario, with the node plugin of
    /// a release.
    pub(crate) async fn join(
        (cluster, release): (&Cluster, &Release),
        scenario: &str,
        name: &str,
        (letter, kind): (&str, &str),
    ) -> Self {
        let instance = format!("i-{}", name.replace('-', ""));
        let zone = format!("cn-beijing-{letter}");
        let request = json!({"op": "add", "id": instance, "zone": zone, "type": kind});
        cluster.cloud.instance(request).await;
        let mut machine = Self {
            name: name.to_owned(),
            instance,
            volumes: 0,
        };
        let (volumes, segments) = machine.node_info(cluster, release).await;
        machine.volumes = volumes;
        let driver = release.driver.as_str();
        machine.register(cluster, (scenario, kind, driver), &segments).await;
        machine
    }

    /// The volume limit and topology that the node plugin of a release reports.
    pub(crate) async fn node_info(&self, cluster: &Cluster, release: &Release) -> (i64, Map<String, Value>) {
        let directory = cluster.plane.directory(&self.name);
        let socket = directory.join("csi.sock");
        let node = node(cluster, &release.node, &directory, &self.instance);
        let (_node, channel) = node.ready(&socket).await;
        let info = info(&channel).await.expect("NodeGetInfo succeeds");
        assert_eq!(self.instance, info.node_id);
        let topology = info.accessible_topology.expect("a node has a topology");
        let segments = topology.segments.into_iter();
        let segments = segments.map(|(key, value)| (key, value.into()));
        (info.max_volumes_per_node, segments.collect())
    }

    /// Creates the objects that kubelet creates.
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
        // Excludes the release's own pods, which would be recreated after the machine is deleted.
        "spec": {"taints": [{"key": OF, "value": scenario, "effect": "NoSchedule"}]},
        });
        let node = api.create(&cluster_scoped("nodes"), &node).await;
        let mut driver = json!({
            "name": driver,
            "nodeID": self.instance,
            "topologyKeys": segments.keys().collect::<Vec<_>>(),
        });
        if self.volumes > 0 {
            driver["allocatable"] = json!({"count": self.volumes});
        }
        // The owner reference that kubelet sets: the CSINode is deleted with its Node.
        let csi = json!({
            "metadata": {"name": self.name, "ownerReferences": [{
                "apiVersion": "v1", "kind": "Node", "name": self.name, "uid": text(&node, "/metadata/uid"),
            }]},
            "spec": {"drivers": [driver]},
        });
        api.create(&storage("csinodes"), &csi).await;
        let resources = json!({"cpu": "64", "memory": "256Gi", "pods": "500"});
        let status = json!({"status": {"capacity": resources, "allocatable": resources}});
        api.change(&self.status_path(), &status).await;
        self.set_ready(api, "True").await;
    }

    /// Sets the condition Ready: `True`, as kubelet does, or `Unknown`, as Kubernetes does without heartbeats.
    pub(crate) async fn set_ready(&self, api: &Api, ready: &str) {
        let status = json!({"status": {"conditions": [{"type": "Ready", "status": ready, "reason": "Test"}]}});
        api.change(&self.status_path(), &status).await;
    }

    fn status_path(&self) -> String {
        cluster_scoped(&format!("nodes/{}/status", self.name))
    }

    /// Deletes Node and instance.
    pub(crate) async fn leave(&self, cluster: &Cluster) {
        cluster.plane.api.delete(&self.path()).await;
        let request = json!({"op": "remove", "id": self.instance});
        cluster.cloud.instance(request).await;
    }

    /// Updates the heartbeat, if the Node exists.
    pub(crate) async fn heartbeat(&self, api: &Api, number: u64) {
        let heartbeat = json!({"metadata": {"annotations": {"example.com/beat": number.to_string()}}});
        api.patch_if_exists(&self.path(), &heartbeat).await;
    }

    /// The API path of its Node.
    pub(crate) fn path(&self) -> String {
        cluster_scoped(&format!("nodes/{}", self.name))
    }
}

/// The container of the DaemonSet as a process, with its paths below a directory.
fn node(cluster: &Cluster, template: &Value, directory: &Path, instance: &str) -> Start {
    let spec = &template["spec"]["containers"][0];
    let args = spec["args"].as_array().expect("the container has arguments");
    let below = |arg: &str, path: &str| arg.replacen(path, &format!("{}{path}", directory.display()), 1);
    let args = args.iter().filter_map(|arg| {
        let arg = arg.as_str().expect("an argument is a string");
        let (flag, _) = arg.split_once('=').unwrap_or((arg, ""));
        match flag {
            // The socket is below the directory; there is no kubelet for registration; other tests cover the probes.
            "--endpoint" | "--registration-dir" | "--kubelet-socket" | "--http-address" => None,
            // No volume is mounted, and the mounts of the machine may be private.
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
    tied(of_driver(spec))
        .args(args)
        .args([endpoint(&directory.join("csi.sock")), cluster.cloud.metadata(instance)])
}
