//! A node that is drained and goes off: how long its pod's volume takes to another node, with and without the preStop
//! hook.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cloud;
use crate::cluster::INSTANCE;
use crate::command::succeed;
use crate::install::{self, NAME};
use crate::keep::{self, CLAIM};
use crate::path::{cluster_scoped, core, grouped};
use crate::plane::NAMESPACE;
use crate::scene::Scene;
use crate::wait::until;
use crate::worker::Worker;

/// The default of kubelet: an unmount is reported at most this late, and not at all if the machine is switched off
/// before.
const STATUS: &str = "10s";

/// Longer than a pod with the hook takes.
const LONG: Duration = Duration::from_secs(60);

/// The hook keeps the node until its volume is detached. Without it the volume is believed to be mounted, and
/// Kubernetes waits for six minutes, or until the node is back.
pub(crate) async fn its_pod_starts_elsewhere(scene: &Scene<'_>) {
    let cluster = scene.cluster;
    let second = match cluster.second.get() {
        Some(second) => second,
        None => cluster.grow().await,
    };
    second.set_status_frequency(STATUS);
    second.restart_kubelet().await;
    second.ready(&cluster.plane).await;
    let with = start_elsewhere(scene, second, true).await;
    let without = start_elsewhere(scene, second, false).await;
    release(scene, true).await;
    println!("from the drain to the pod's start elsewhere: {with:.1?} with the preStop hook, {without:.1?} without");
    assert!(with.is_some_and(|with| with < LONG), "{with:?}");
    assert_eq!(without, None, "it did not wait for the node");
}

/// The time from the drain of the second node to the start of its pod on the first one; none if that takes long.
async fn start_elsewhere(scene: &Scene<'_>, second: &Worker, hook: bool) -> Option<Duration> {
    let first = &scene.cluster.worker;
    release(scene, hook).await;
    let node = |worker: &Worker| cluster_scoped(&format!("nodes/{}", worker.name));
    let cordon = |is: bool| json!({"spec": {"unschedulable": is}});
    scene.api.change(&node(first), &cordon(true)).await;
    let sets = grouped("apps", &scene.name, "statefulsets");
    scene.api.create(&sets, &keep::stateful_set()).await;
    let pod = scene.running("db-0").await;
    assert_eq!(pod["spec"]["nodeName"], second.name);
    scene.api.change(&node(first), &cordon(false)).await;
    scene.sh("db-0", "echo written > /data/file && sync").await;

    let begin = Instant::now();
    let taint = json!({"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"});
    let drain = json!({"spec": {"unschedulable": true, "taints": [taint]}});
    scene.api.change(&node(second), &drain).await;
    end(scene, &scene.path("pods", "db-0"), &pod).await;
    // That of the driver ends last, as in a graceful shutdown of the node.
    let plugin = plugin(scene, second).await;
    let path = core(
        NAMESPACE,
        &format!("pods/{}", plugin["metadata"]["name"].as_str().unwrap()),
    );
    end(scene, &path, &plugin).await;
    second.off().await;
    scene.api.delete(&node(second)).await;
    println!("{:.1?}: the node is off", begin.elapsed());

    let starts = async {
        until("its pod is on the other node", async || {
            let pod = scene.api.get(&scene.path("pods", "db-0")).await?;
            (pod["spec"]["nodeName"] == first.name).then_some(())
        })
        .await;
        scene.running("db-0").await;
        begin.elapsed()
    };
    let took = tokio::time::timeout(LONG, starts).await.ok();
    second.on().await;
    second.ready(&scene.cluster.plane).await;
    install::registered(scene.cluster, second.name).await;
    scene.running("db-0").await;
    assert_eq!(scene.sh("db-0", "cat /data/file").await, "written");
    let volume = scene.bound(CLAIM).await;
    let disk = cloud::disk(&scene.cluster.cloud, &volume.disk).await;
    assert_eq!(cloud::holders(&disk.expect("it is used")), [INSTANCE]);
    scene.api.delete(&format!("{sets}/db")).await;
    until("the pod is gone", async || {
        let pod = scene.api.get(&scene.path("pods", "db-0")).await;
        pod.is_none().then_some(())
    })
    .await;
    scene.close(&[CLAIM]).await;
    until("nothing is mounted on the node that was off", async || {
        (!second.mounts().contains("kubernetes.io/csi")).then_some(())
    })
    .await;
    took
}

/// Installs the release with or without the hook, and waits until it is everywhere.
async fn release(scene: &Scene<'_>, hook: bool) {
    let settings = install::settings(scene.cluster);
    let mut args = vec!["upgrade", NAME];
    args.extend(settings.iter().map(String::as_str));
    let hook = format!("node.waitForVolumeDetach.enabled={hook}");
    args.extend(["--set", &hook]);
    succeed(install::helm(scene.cluster, &args)).await;
    install::ready(scene.cluster).await;
}

/// The node plugin's pod.
async fn plugin(scene: &Scene<'_>, worker: &Worker) -> Value {
    let pods = "pods?labelSelector=app.kubernetes.io%2Fcomponent%3Dnode";
    let pods = scene.api.list(&core(NAMESPACE, pods)).await;
    let mut pods = pods.into_iter();
    let found = pods.find(|pod| pod["spec"]["nodeName"] == worker.name);
    found.expect("the driver is there")
}

/// Ends a pod, and waits until it, which may get a successor of the same name, is gone.
async fn end(scene: &Scene<'_>, path: &str, pod: &Value) {
    scene.api.delete(path).await;
    until(&format!("{path} is gone"), async || {
        let now = scene.api.get(path).await;
        let is_gone = now.is_none_or(|now| now["metadata"]["uid"] != pod["metadata"]["uid"]);
        is_gone.then_some(())
    })
    .await;
}
