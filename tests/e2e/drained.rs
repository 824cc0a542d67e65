//! A node that is drained and switched off: the time until its volume is attached to another node, with and without the
//! preStop hook.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::text;
use crate::cloud;
use crate::cluster::INSTANCE;
use crate::install;
use crate::keep::{self, CLAIM};
use crate::path::{core, grouped};
use crate::plane::NAMESPACE;
use crate::scene::Scene;
use crate::wait::until;
use crate::worker::Worker;

/// The default of kubelet: the maximum delay of the report of an unmount, which is lost if the machine is switched off
/// before.
const STATUS_FREQUENCY: &str = "10s";

/// Longer than the start of the pod takes with the hook.
const LONG: Duration = Duration::from_secs(60);

/// The hook delays the shutdown until the volume is detached. Without it Kubernetes assumes that the volume is mounted,
/// and waits for six minutes or until the node is ready again.
pub(crate) async fn its_pod_starts_elsewhere(scene: &Scene<'_>) {
    let cluster = scene.cluster;
    let second = cluster.second().await;
    second.set_status_frequency(STATUS_FREQUENCY);
    second.restart_kubelet().await;
    second.ready(&cluster.plane).await;
    let with = start_elsewhere(scene, second, true).await;
    let without = start_elsewhere(scene, second, false).await;
    release(scene, true).await;
    println!("from the drain to the pod's start elsewhere: {with:.1?} with the preStop hook, {without:.1?} without");
    assert!(with.is_some_and(|with| with < LONG), "{with:?}");
    assert_eq!(without, None, "the volume was detached before the node was ready again");
}

/// The time from the drain of the second node to the start of its pod on the first one; none after the timeout.
async fn start_elsewhere(scene: &Scene<'_>, second: &Worker, hook: bool) -> Option<Duration> {
    let first = &scene.cluster.worker;
    release(scene, hook).await;
    let pod = run_on(scene, second).await;

    let begin = Instant::now();
    let taint = json!({"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"});
    let drain = json!({"spec": {"unschedulable": true, "taints": [taint]}});
    scene.api.change(&second.path(), &drain).await;
    end(scene, &scene.path("pods", "db-0"), &pod).await;
    // The pod of the driver ends last, as in a graceful shutdown of the node.
    let plugin = plugin(scene, second).await;
    let path = core(NAMESPACE, &format!("pods/{}", text(&plugin, "/metadata/name")));
    end(scene, &path, &plugin).await;
    second.off().await;
    scene.api.delete(&second.path()).await;
    println!("{:.1?}: the node is off", begin.elapsed());

    let starts = async {
        scene.running_on("db-0", first.name).await;
        begin.elapsed()
    };
    let took = tokio::time::timeout(LONG, starts).await.ok();
    second.on().await;
    second.ready(&scene.cluster.plane).await;
    install::registered(scene.cluster, second.name).await;
    remove_from(scene, second).await;
    took
}

/// Creates the StatefulSet, whose pod runs on the second node, and writes to its volume.
pub(crate) async fn run_on(scene: &Scene<'_>, second: &Worker) -> Value {
    let first = scene.cluster.worker.path();
    let cordon = |is: bool| json!({"spec": {"unschedulable": is}});
    scene.api.change(&first, &cordon(true)).await;
    let sets = grouped("apps", &scene.name, "statefulsets");
    scene.api.create(&sets, &keep::stateful_set()).await;
    let pod = scene.running("db-0").await;
    assert_eq!(pod["spec"]["nodeName"], second.name);
    scene.api.change(&first, &cordon(false)).await;
    scene.sh("db-0", "echo written > /data/file && sync").await;
    pod
}

/// Asserts that the pod and its volume are on the first node, deletes them, and waits until the second node has
/// unmounted what was mounted before it was off.
pub(crate) async fn remove_from(scene: &Scene<'_>, second: &Worker) {
    scene.running("db-0").await;
    assert_eq!(scene.sh("db-0", "cat /data/file").await, "written");
    let volume = scene.bound(CLAIM).await;
    let disk = cloud::disk(&scene.cluster.cloud, &volume.disk).await;
    assert_eq!(cloud::holders(&disk.expect("the disk exists")), [INSTANCE]);
    keep::delete(scene).await;
    until("nothing is mounted on the node that was off", async || {
        (!second.mounts().contains("kubernetes.io/csi")).then_some(())
    })
    .await;
}

/// Upgrades the release with or without the hook.
async fn release(scene: &Scene<'_>, hook: bool) {
    let hook = format!("node.waitForVolumeDetach.enabled={hook}");
    install::upgrade(scene.cluster, &["--set", &hook]).await;
}

/// The pod of the node plugin on this node.
async fn plugin(scene: &Scene<'_>, worker: &Worker) -> Value {
    let mut pods = install::node_pods(scene.cluster).await.into_iter();
    let found = pods.find(|pod| pod["spec"]["nodeName"] == worker.name);
    found.expect("the node has a pod of the driver")
}

/// Deletes a pod, and waits for that; it may have a successor of the same name.
async fn end(scene: &Scene<'_>, path: &str, pod: &Value) {
    scene.api.delete(path).await;
    until(&format!("{path} is deleted"), async || {
        let now = scene.api.get(path).await;
        let is_gone = now.is_none_or(|now| now["metadata"]["uid"] != pod["metadata"]["uid"]);
        is_gone.then_some(())
    })
    .await;
}
