//! A node that fails, and whose instance is stopped: the time until its pod writes on another node. `make e2e
//! ARGS=fencing` prints it with the grace period of Kubernetes, with and without fencing.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::time::Instant;

use crate::cluster::{Cluster, SECOND_INSTANCE};
use crate::drained::{remove_from, run_on};
use crate::install;
use crate::scene::Scene;
use crate::wait::until;
use crate::worker::Worker;

/// The argument that selects the measurement.
pub(crate) const WORD: &str = "fencing";

/// The default of kube-controller-manager 1.32 and later.
const NODE_MONITOR_GRACE_PERIOD: &str = "50s";

/// How long the measurement without fencing waits: longer than the six minutes after which Kubernetes detaches volumes
/// of pods that were deleted by force.
const WITHOUT: Duration = Duration::from_secs(420);

pub(crate) fn run() -> ExitCode {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be built").block_on(Box::pin(measure()));
    ExitCode::SUCCESS
}

async fn measure() {
    let cluster = Cluster::start_with(NODE_MONITOR_GRACE_PERIOD).await;
    let second = cluster.second().await;
    let scene = Scene::open(&cluster, WORD).await;
    println!("seconds from the failure of a node, whose instance is stopped, with a node monitor grace period of");
    println!("{NODE_MONITOR_GRACE_PERIOD}:");
    for round in 1..=3 {
        run_on(&scene, second).await;
        let begin = fail(&scene, second).await;
        let steps = steps(&scene, second, begin).await;
        println!("with fencing, round {round}: {steps}");
        recover(&scene, second).await;
    }
    install::upgrade(&cluster, &["--set", "controller.fencing.enabled=false"]).await;
    run_on(&scene, second).await;
    let begin = fail(&scene, second).await;
    let pod = scene.path("pods", "db-0");
    while begin.elapsed() < WITHOUT {
        let pod = scene.api.get(&pod).await.unwrap_or_default();
        if pod["spec"]["nodeName"] == cluster.worker.name {
            println!(
                "without fencing: the pod is on the other node after {:.1}",
                begin.elapsed().as_secs_f64()
            );
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    println!("without fencing: the pod has not moved after {} s", WITHOUT.as_secs());
}

/// The pod and its volume leave a node that is not ready and whose instance is stopped, and the node is used again.
pub(crate) async fn its_pod_starts_elsewhere(scene: &Scene<'_>) {
    let cluster = scene.cluster;
    let second = cluster.second().await;
    run_on(scene, second).await;
    let begin = fail(scene, second).await;
    // As Kubernetes does after the grace period, which is long in this cluster.
    let unknown = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "Test"}]}});
    let status = format!("{}/status", second.path());
    scene.api.change(&status, &unknown).await;
    println!("{}", steps(scene, second, begin).await);
    recover(scene, second).await;
}

/// kubelet ends without a report, and the cloud stops the instance.
async fn fail(scene: &Scene<'_>, second: &Worker) -> Instant {
    let begin = Instant::now();
    second.power_off().await;
    let stop = json!({"op": "stop", "id": SECOND_INSTANCE});
    scene.cluster.cloud.instance(stop).await;
    begin
}

/// The seconds from the failure until the pod writes on the first node, by step.
async fn steps(scene: &Scene<'_>, second: &Worker, begin: Instant) -> String {
    let elapsed = || format!("{:.1}", begin.elapsed().as_secs_f64());
    let node = async || scene.api.get(&second.path()).await.expect("the node exists");
    until("the node is not ready", async || {
        let node = node().await;
        let conditions = node["status"]["conditions"].as_array()?;
        let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
        (!conditions.iter().any(is_ready)).then_some(())
    })
    .await;
    let not_ready = elapsed();
    until("the node is out of service", async || {
        let taints = node().await["spec"]["taints"].to_string();
        taints.contains("node.kubernetes.io/out-of-service").then_some(())
    })
    .await;
    let tainted = elapsed();
    scene.running_on("db-0", scene.cluster.worker.name).await;
    let runs = elapsed();
    scene.sh("db-0", "echo again > /data/again && sync").await;
    let writes = elapsed();
    format!("not ready {not_ready}, out of service {tainted}, the pod runs elsewhere {runs}, and has written {writes}")
}

/// Starts the instance and kubelet again, and waits until the node is in service.
async fn recover(scene: &Scene<'_>, second: &Worker) {
    let start = json!({"op": "start", "id": SECOND_INSTANCE});
    scene.cluster.cloud.instance(start).await;
    second.on().await;
    second.ready(&scene.cluster.plane).await;
    until("the node is in service", async || {
        let node = scene.api.get(&second.path()).await?;
        let taints = node["spec"]["taints"].to_string();
        (!taints.contains("node.kubernetes.io/out-of-service")).then_some(())
    })
    .await;
    install::registered(scene.cluster, second.name).await;
    remove_from(scene, second).await;
}
