//! The chart in the cluster, installed by Helm as a user would do it.

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

/// What the release is called.
pub(crate) const NAME: &str = "e2e";
/// The driver's name; the chart's default.
pub(crate) const DRIVER: &str = "diskplugin.csi.example";
/// The Secret that it takes its key from; `values.yaml` says so too.
const KEYS: &str = "disk-key";
/// What its workloads are called.
pub(crate) const CONTROLLER: &str = "e2e-diskplugin-controller";
pub(crate) const NODE: &str = "e2e-diskplugin-node";

/// Makes the namespace and the Secret, and installs the chart.
pub(crate) async fn chart(cluster: &Cluster) {
    let api = &cluster.plane.api;
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    api.create("/api/v1/namespaces", &namespace).await;
    let keys = json!({
        "metadata": {"name": KEYS},
        "stringData": {"access-key-id": KEY, "access-key-secret": SECRET},
    });
    api.create(&core(NAMESPACE, "secrets"), &keys).await;
    let mut args = vec!["install", NAME];
    let settings = settings(cluster);
    args.extend(settings.iter().map(String::as_str));
    succeed(helm(cluster, &args)).await;
}

/// The chart, and what its values are here.
pub(crate) fn settings(cluster: &Cluster) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = |path: &str| root.join(path).display().to_string();
    let devices = cluster.devices().join("nodes").join(INSTANCE);
    let set = |name: &str, value: String| ["--set".to_owned(), format!("{name}={value}")];
    let mut args = vec![file("deploy/helm/diskplugin")];
    args.extend(["--values".to_owned(), file("tests/e2e/values.yaml")]);
    let directory = cluster.worker.directory.join("state").display().to_string();
    args.extend(set("ecsEndpoint", format!("http://{CLOUD}")));
    args.extend(set("metadata.endpoint", format!("http://{CLOUD}/imds/{INSTANCE}")));
    args.extend(set(
        "node.kubeletDir",
        cluster.worker.kubelet_dir().display().to_string(),
    ));
    args.extend(set("node.stateDir", directory));
    args.extend(set("node.extraArgs[0]", format!("--device-dir={}", devices.display())));
    args
}

/// Helm on the release's namespace.
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
        let now = status["observedGeneration"] == daemon["metadata"]["generation"];
        let all = &status["desiredNumberScheduled"];
        let is_everywhere = status["updatedNumberScheduled"] == *all && status["numberReady"] == *all;
        (now && *all != 0 && is_everywhere).then_some(())
    })
    .await;
    registered(cluster, cluster.worker.name).await;
}

/// Waits until the kubelet of this node has told of the driver, with the categories that it takes. Before the
/// instance's type is known it is registered without them; it is registered anew then, and for a moment mounts are
/// refused.
pub(crate) async fn registered(cluster: &Cluster, node: &str) -> Value {
    let path = storage(&format!("csinodes/{node}"));
    until(
        &format!("the kubelet of {node} knows the driver and its categories"),
        async || {
            let node = cluster.plane.api.get(&path).await?;
            let drivers = node["spec"]["drivers"].as_array()?.iter();
            let ours = drivers.filter(|driver| driver["name"] == DRIVER);
            let mut whole = ours.filter(|driver| {
                let mut keys = driver["topologyKeys"].as_array().into_iter().flatten();
                keys.any(|key| category_of(key.as_str().unwrap_or_default()).is_some())
            });
            whole.next().cloned()
        },
    )
    .await
}

/// What the release's containers log, and what happened to its pods.
pub(crate) async fn logs(cluster: &Cluster) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for component in ["controller", "node"] {
        let selector = format!("--selector=app.kubernetes.io/component={component}");
        let args = [
            "logs",
            "--namespace",
            NAMESPACE,
            "--all-containers",
            "--prefix",
            "--tail=-1",
            "--max-log-requests=20",
            &selector,
        ];
        let ended = cluster.plane.kubectl(args).await;
        all.push((component.to_owned(), ended.stdout + &ended.stderr));
    }
    for args in [
        ["get", "pods", "--all-namespaces", "--output=wide"],
        [
            "get",
            "events",
            "--all-namespaces",
            "--sort-by=.metadata.creationTimestamp",
        ],
    ] {
        all.push((args.join(" "), cluster.plane.kubectl(args).await.stdout));
    }
    all
}
