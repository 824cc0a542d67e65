//! Disruptions of a node with volumes in use.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::api::Api;
use crate::command::succeed;
use crate::common::process::Ended;
use crate::install::{self, DRIVER, NAME};
use crate::path::{core, storage};
use crate::plane::NAMESPACE;
use crate::scene::Scene;
use crate::wait::{PATIENCE, until};
use crate::worker::Worker;

/// Writes continuously in a pod, and checks that nothing was lost.
const WRITE: &str = "sh -c 'i=0; while :; do i=$((i+1)); echo $i >> /data/log || echo $i >> /tmp/failed; \
                     sync /data/log; usleep 20000; done' > /dev/null 2>&1 &";
const WRITTEN: &str = "test ! -e /tmp/failed && awk 'NR != $1 { exit 1 }' /data/log && wc -l < /data/log";

/// A kubelet that was killed recovers the volumes of its pods, and mounts new ones.
pub(crate) async fn kubelet_restarted(scene: &Scene<'_>) {
    scene.want("data", "disk").await;
    scene.start("before", &["data"]).await;
    scene.sh("before", WRITE).await;
    scene.cluster.worker.restart_kubelet().await;
    scene.cluster.worker.ready(&scene.cluster.plane).await;
    scene.want("other", "disk").await;
    scene.start("after", &["other"]).await;
    scene.sh("after", "echo new > /other/file && sync").await;
    continues_to_write(scene, "before").await;
    for pod in ["before", "after"] {
        scene.end(pod).await;
    }
    scene.close(&["data", "other"]).await;
}

/// A new node plugin takes over the mounts of the old one, and pods continue to write.
pub(crate) async fn upgraded(scene: &Scene<'_>) {
    scene.want("data", "disk").await;
    scene.start("before", &["data"]).await;
    scene.sh("before", WRITE).await;
    let pod = node_pod(scene).await;
    // In parallel: a pod that uses a volume is created while the node plugin is not installed.
    scene.want("other", "disk").await;
    scene.make("pods", &Scene::shell("during", &["other"])).await;
    install::upgrade(scene.cluster, &["--set-string", "node.podAnnotations.upgraded=yes"]).await;
    assert_ne!(node_pod(scene).await, pod, "the pod was not replaced");
    scene.running("during").await;
    scene.sh("during", "echo new > /other/file && sync").await;
    continues_to_write(scene, "before").await;
    for pod in ["before", "during"] {
        scene.end(pod).await;
    }
    scene.close(&["data", "other"]).await;
}

/// If the node plugin is killed while it formats a disk, it is restarted, and the pod gets its volume.
pub(crate) async fn killed_during_stage(scene: &Scene<'_>) {
    scene.want("data", "disk").await;
    scene.make("pods", &Scene::shell("app", &["data"])).await;
    let end = Instant::now() + PATIENCE;
    let plugin = loop {
        if let Some(plugin) = formatting_plugin() {
            break plugin;
        }
        assert!(Instant::now() < end, "timeout: no mkfs runs");
        sleep(Duration::from_millis(1)).await;
    };
    kill(plugin, Signal::SIGKILL).expect("it runs");
    scene.running("app").await;
    scene.sh("app", "echo there > /data/file && sync").await;
    let path = core(NAMESPACE, &format!("pods/{}", node_pod(scene).await));
    let pod = scene.cluster.plane.api.get(&path).await.expect("the pod exists");
    let restarts = pod["status"]["containerStatuses"][0]["restartCount"].as_u64();
    assert!(restarts > Some(0), "the node plugin did not restart: {pod}");
    scene.end("app").await;
    scene.start("again", &["data"]).await;
    assert_eq!(scene.sh("again", "cat /data/file").await, "there");
    scene.end("again").await;
    scene.close(&["data"]).await;
}

/// Uninstalling the release leaves nothing on the machine, in the cluster and in the cloud.
pub(crate) async fn uninstalled(scene: &Scene<'_>) {
    let cluster = scene.cluster;
    scene.want("data", "disk").await;
    scene.start("app", &["data"]).await;
    scene.end("app").await;
    scene.close(&["data"]).await;
    succeed(install::helm(cluster, &["uninstall", NAME, "--wait"])).await;
    let api = &cluster.plane.api;
    let workers: Vec<&Worker> = cluster.workers().collect();
    for worker in &workers {
        wait_unregistered(api, worker.name).await;
    }
    until("its pods are deleted", async || {
        api.list(&core(NAMESPACE, "pods")).await.is_empty().then_some(())
    })
    .await;
    assert_eq!(api.list(&storage("volumeattachments")).await, [] as [Value; 0]);
    // The system disks of instances belong to the cloud.
    let disks = cluster.cloud.disks().await;
    assert!(disks.iter().all(|disk| disk["type"] == "system"), "{disks:?}");
    for worker in &workers {
        assert_clean(worker);
    }
    assert_eq!(loops(&cluster.worker.directory), [""; 0], "loop devices are left");
}

/// Waits until the driver is not registered on the node.
async fn wait_unregistered(api: &Api, node: &str) {
    until(&format!("the driver is not registered on {node}"), async || {
        let node = api.get(&storage(&format!("csinodes/{node}"))).await?;
        let mut drivers = node["spec"]["drivers"].as_array().into_iter().flatten();
        drivers.all(|driver| driver["name"] != DRIVER).then_some(())
    })
    .await;
}

/// Asserts that the node has neither sockets nor mounts of the driver.
fn assert_clean(worker: &Worker) {
    let kubelet = worker.own_kubelet_dir();
    let sockets = std::fs::read_dir(kubelet.join("plugins_registry")).unwrap();
    assert_eq!(sockets.count(), 0, "a registration socket is left");
    let socket = kubelet.join("plugins").join(DRIVER).join("csi.sock");
    assert!(!socket.exists(), "{} is left", socket.display());
    let mounts = worker.mounts();
    let is_csi = |line: &&str| line.contains("kubernetes.io~csi") || line.contains("kubernetes.io/csi");
    let left: Vec<&str> = mounts.lines().filter(is_csi).collect();
    assert_eq!(left, [""; 0], "mounts are left on {}", worker.name);
}

/// The files below the directory that are attached to loop devices.
fn loops(directory: &Path) -> Vec<String> {
    let devices = std::fs::read_dir("/sys/block").unwrap().filter_map(Result::ok);
    let files = devices.filter_map(|device| std::fs::read_to_string(device.path().join("loop/backing_file")).ok());
    files.filter(|file| Path::new(file).starts_with(directory)).collect()
}

/// The node plugin, if it is running mkfs: the parent of that process. The processes of containers are visible here.
fn formatting_plugin() -> Option<Pid> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes.into_iter().find_map(|process| {
        let stat = std::fs::read_to_string(process.path().join("stat")).ok()?;
        let (head, tail) = stat.rsplit_once(") ")?;
        let (_, name) = head.split_once('(')?;
        if !name.starts_with("mkfs.") && name != "mke2fs" {
            return None;
        }
        let parent: i32 = tail.split(' ').nth(1)?.parse().ok()?;
        Some(Pid::from_raw(parent))
    })
}

/// The name of the only pod of the DaemonSet.
async fn node_pod(scene: &Scene<'_>) -> String {
    let pods = install::node_pods(scene.cluster).await;
    assert_eq!(pods.len(), 1, "{pods:?}");
    crate::api::text(&pods[0], "/metadata/name").to_owned()
}

/// Waits for further writes of the pod, and asserts that no write was lost or failed.
async fn continues_to_write(scene: &Scene<'_>, pod: &str) {
    let count = async || {
        let Ended { code, stdout, stderr } = scene.try_sh(pod, WRITTEN).await;
        assert_eq!(code, Some(0), "{pod} lost a write: {stdout}{stderr}");
        stdout.trim().parse::<u64>().expect("wc prints a number")
    };
    let before = count().await;
    until(&format!("{pod} continues to write"), async || {
        (count().await > before + 10).then_some(())
    })
    .await;
}
