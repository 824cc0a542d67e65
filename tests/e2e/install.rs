//! The release: the chart, installed by Helm as by a user.

use std::path::Path;

use diskplugin::model::topology::category_of;
use serde_json::{Value, json};

use crate::cluster::{Cluster, INSTANCE};
use crate::command::succeed;
use crate::common::fake::{KEY, SECRET};
use crate::common::process::Start;
use crate::helm;
use crate::network::CLOUD;
use crate::path::{core, grouped, storage};
use crate::plane::NAMESPACE;
use crate::wait::until;

/// The name of the release.
pub(crate) const NAME: &str = "e2e";
/// The driver name, the chart's default.
pub(crate) const DRIVER: &str = "diskplugin.csi.example";
/// The credentials Secret, as in `values.yaml`.
const KEYS: &str = "disk-key";
/// The names of its workloads.
pub(crate) const CONTROLLER: &str = "e2e-diskplugin-controller";
pub(crate) const NODE: &str = "e2e-diskplugin-node";

/// Creates the namespace and the Secret, and installs the chart.
pub(crate) async fn chart(cluster: &Cluster) {
    let api = &cluster.plane.api;
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    api.create("/api/v1/namespaces", &namespace).await;
    let keys = json!({
        "metadata": {"name": KEYS},
        "stringData": {"access-key-id": KEY, "access-key-secret": SECRET},
    });
    api.create(&core(NAMESPACE, "secrets"), &keys).await;
    run(cluster, "install", &[]).await;
}

/// Upgrades the release with more values, and waits until it is ready.
pub(crate) async fn upgrade(cluster: &Cluster, values: &[&str]) {
    run(cluster, "upgrade", values).await;
    ready(cluster).await;
}

async fn run(cluster: &Cluster, command: &str, values: &[&str]) {
    let settings = settings(cluster);
    let settings = settings.iter().map(String::as_str).chain(values.iter().copied());
    let args: Vec<&str> = [command, NAME].into_iter().chain(settings).collect();
    succeed(helm(cluster, &args)).await;
}

/// The pods of the DaemonSet.
pub(crate) async fn node_pods(cluster: &Cluster) -> Vec<Value> {
    let selector = "pods?labelSelector=app.kubernetes.io%2Fcomponent%3Dnode";
    cluster.plane.api.list(&core(NAMESPACE, selector)).await
}

/// The path of the chart, and its values.
fn settings(cluster: &Cluster) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = |path: &str| root.join(path).display().to_string();
    let devices = cluster.devices().join("nodes").join(INSTANCE);
    let set = |name: &str, value: String| ["--set".to_owned(), format!("{name}={value}")];
    let mut args = vec![file("deploy/helm/diskplugin")];
    args.extend(["--values".to_owned(), file("tests/e2e/values.yaml")]);
    let directory = cluster.worker.directory.join("state").display().to_string();
    args.extend(set("ecsEndpoint", format!("http://{CLOUD}")));
    args.extend(set("metadata.endpoint", format!("http://{CLOUD}/imds/{INSTANCE}")));
    let kubelet_dir = cluster.worker.kubelet_dir().display().to_string();
    args.extend(set("node.kubeletDir", kubelet_dir));
    args.extend(set("node.stateDir", directory));
    args.extend(set("node.extraArgs[0]", format!("--device-dir={}", devices.display())));
    args
}

/// Helm on the namespace of the release.
pub(crate) fn helm(cluster: &Cluster, args: &[&str]) -> Start {
    helm::start(&cluster.plane, NAMESPACE, args)
}

/// Waits until all pods of the release are ready and the driver is registered on the node.
pub(crate) async fn ready(cluster: &Cluster) {
    let api = &cluster.plane.api;
    let controller = grouped("apps", NAMESPACE, &format!("deployments/{CONTROLLER}"));
    until("the controller's pods are ready", async || {
        let deployment = api.get(&controller).await?;
        let (wanted, status) = (&deployment["spec"]["replicas"], &deployment["status"]);
        (status["readyReplicas"] == *wanted && status["updatedReplicas"] == *wanted).then_some(())
    })
    .await;
    let daemon = grouped("apps", NAMESPACE, &format!("daemonsets/{NODE}"));
    until("the nodes' pods are ready", async || {
        let daemon = api.get(&daemon).await?;
        let status = &daemon["status"];
        let is_current = status["observedGeneration"] == daemon["metadata"]["generation"];
        let all = &status["desiredNumberScheduled"];
        let is_complete = status["updatedNumberScheduled"] == *all && status["numberReady"] == *all;
        (is_current && *all != 0 && is_complete).then_some(())
    })
    .await;
    registered(cluster, cluster.worker.name).await;
}

/// Waits until the driver is registered on this node with its disk categories. It is registered without them until the
/// instance type is known, and then again, during which mounts are rejected.
pub(crate) async fn registered(cluster: &Cluster, node: &str) {
    let path = storage(&format!("csinodes/{node}"));
    until(
        &format!("the driver is registered on {node} with its categories"),
        async || {
            let node = cluster.plane.api.get(&path).await?;
            let mut drivers = node["spec"]["drivers"].as_array()?.iter();
            let driver = drivers.find(|driver| driver["name"] == DRIVER)?;
            let mut keys = driver["topologyKeys"].as_array()?.iter();
            keys.any(|key| category_of(key.as_str().unwrap_or_default()).is_some())
                .then_some(())
        },
    )
    .await;
}

/// The logs of the release's containers, the pods, and the events of the cluster.
pub(crate) async fn logs(cluster: &Cluster) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for component in ["controller", "node"] {
        let selector = format!("--selector=app.kubernetes.io/component={component}");
        let flags = "--all-containers --prefix --tail=-1 --max-log-requests=20".split(' ');
        let args = ["logs", "--namespace", NAMESPACE, &selector].into_iter().chain(flags);
        let ended = cluster.plane.kubectl(args).await;
        all.push((component.to_owned(), ended.stdout + &ended.stderr));
    }
    for (kind, flag) in [
        ("pods", "--output=wide"),
        ("events", "--sort-by=.metadata.creationTimestamp"),
    ] {
        let ended = cluster.plane.kubectl(["get", kind, "--all-namespaces", flag]).await;
        all.push((kind.to_owned(), ended.stdout));
    }
    all
}
