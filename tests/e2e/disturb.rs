//! What happens to a node while volumes are used.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::api::Api;
use crate::command::succeed;
use crate::common::process::Ended;
use crate::install::{self, DRIVER, NAME, NODE};
use crate::path::{core, grouped, storage};
use crate::plane::NAMESPACE;
use crate::scene::Scene;
use crate::wait::{PATIENCE, until};
use crate::worker::Worker;

/// What a pod runs that writes all the time, and how one sees that nothing was lost.
const WRITE: &str = "sh -c 'i=0; while :; do i=$((i+1)); echo $i >> /data/log || echo $i >> /tmp/failed; \
                     sync /data/log; usleep 20000; done' > /dev/null 2>&1 &";
const WRITTEN: &str = "test ! -e /tmp/failed && awk 'NR != $1 { exit 1 }' /data/log && wc -l < /data/log";

/// A kubelet that was killed knows its pods' volumes again, and mounts new ones.
pub(crate) async fn kubelet_restarted(scene: &Scene<'_>) {
    scene.want("data", "disk").await;
    scene.start("before", &["data"]).await;
    scene.sh("before", WRITE).await;
    scene.cluster.worker.restart_kubelet().await;
    scene.cluster.worker.ready(&scene.cluster.plane).await;
    scene.want("other", "disk").await;
    scene.start("after", &["other"]).await;
    scene.sh("after", "echo new > /other/file && sync").await;
    writes_on(scene, "before").await;
    for pod in ["before", "after"] {
        scene.end(pod).await;
    }
    scene.close(&["data", "other"]).await;
}

/// A new node plugin takes over what the old one has mounted, and pods that write do not notice.
pub(crate) async fn upgraded(scene: &Scene<'_>) {
    scene.want("data", "disk").await;
    scene.start("before", &["data"]).await;
    scene.sh("before", WRITE).await;
    let pod = node_pod(scene).await;
    let settings = install::settings(scene.cluster);
    let mut args = vec!["upgrade", NAME];
    args.extend(settings.iter().map(String::as_str));
    args.extend(["--set-string", "node.podAnnotations.upgraded=yes"]);
    // Both at once: a volume is wanted while there is no plugin.
    scene.want("other", "disk").await;
    scene.make("pods", &Scene::shell("during", &["other"])).await;
    succeed(install::helm(scene.cluster, &args)).await;
    install::ready(scene.cluster).await;
    assert_ne!(node_pod(scene).await, pod, "it is the same pod");
    scene.running("during").await;
    scene.sh("during", "echo new > /other/file && sync").await;
    writes_on(scene, "before").await;
    for pod in ["before", "during"] {
        scene.end(pod).await;
    }
    scene.close(&["data", "other"]).await;
}

/// A node plugin that is killed while it makes a filesystem is started again, and the pod gets its volume.
pub(crate) async fn killed_in_mid_stage(scene: &Scene<'_>) {
    scene.want("data", "disk").await;
    scene.make("pods", &Scene::shell("app", &["data"])).await;
    let end = Instant::now() + PATIENCE;
    let plugin = loop {
        if let Some(plugin) = while_it_formats() {
            break plugin;
        }
        assert!(Instant::now() < end, "no filesystem is made");
        sleep(Duration::from_millis(1)).await;
    };
    kill(plugin, Signal::SIGKILL).expect("it runs");
    scene.running("app").await;
    scene.sh("app", "echo there > /data/file && sync").await;
    let path = core(NAMESPACE, &format!("pods/{}", node_pod(scene).await));
    let pod = scene.cluster.plane.api.get(&path).await.expect("it is there");
    let restarts = pod["status"]["containerStatuses"][0]["restartCount"].as_u64();
    assert!(restarts > Some(0), "it was not killed: {pod}");
    scene.end("app").await;
    scene.start("again", &["data"]).await;
    assert_eq!(scene.sh("again", "cat /data/file").await, "there");
    scene.end("again").await;
    scene.close(&["data"]).await;
}

/// Without release nothing of it is left on the machine, in the cluster and in the cloud.
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
        forgotten(api, worker.name).await;
    }
    until("its pods are gone", async || {
        api.list(&core(NAMESPACE, "pods")).await.is_empty().then_some(())
    })
    .await;
    assert_eq!(api.list(&storage("volumeattachments")).await, [] as [Value; 0]);
    assert_eq!(
        cluster.cloud.disks().await.iter().filter(|disk| is_ours(disk)).count(),
        0
    );
    for worker in &workers {
        clean(worker);
    }
    assert_eq!(loops(&cluster.worker.directory), [""; 0], "loop devices are left");
}

/// Waits until the node's kubelet knows the driver no more.
async fn forgotten(api: &Api, node: &str) {
    until(&format!("the kubelet of {node} knows no driver"), async || {
        let node = api.get(&storage(&format!("csinodes/{node}"))).await?;
        let drivers = node["spec"]["drivers"].as_array();
        drivers
            .into_iter()
            .flatten()
            .all(|driver| driver["name"] != DRIVER)
            .then_some(())
    })
    .await;
}

/// The driver has left neither socket nor mount on the node.
fn clean(worker: &Worker) {
    let kubelet = worker.own_kubelet_dir();
    let sockets = std::fs::read_dir(kubelet.join("plugins_registry")).unwrap();
    assert_eq!(sockets.count(), 0, "a socket of registration is left");
    let socket = kubelet.join("plugins").join(DRIVER).join("csi.sock");
    assert!(!socket.exists(), "{} is left", socket.display());
    let mounts = worker.mounts();
    let left: Vec<&str> = mounts
        .lines()
        .filter(|line| line.contains("kubernetes.io~csi") || line.contains("kubernetes.io/csi"))
        .collect();
    assert_eq!(left, [""; 0], "mounts are left on {}", worker.name);
}

/// The system disks of instances are the cloud's.
fn is_ours(disk: &Value) -> bool {
    disk["type"] != "system"
}

/// Files below the directory that have a loop device.
fn loops(directory: &Path) -> Vec<String> {
    let devices = std::fs::read_dir("/sys/block").unwrap().filter_map(Result::ok);
    let files = devices.filter_map(|device| std::fs::read_to_string(device.path().join("loop/backing_file")).ok());
    files.filter(|file| Path::new(file).starts_with(directory)).collect()
}

/// The plugin, if it formats right now: it is the parent of the tool. All processes of containers show here.
fn while_it_formats() -> Option<Pid> {
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

/// The pod of the DaemonSet.
async fn node_pod(scene: &Scene<'_>) -> String {
    let daemon = grouped("apps", NAMESPACE, &format!("daemonsets/{NODE}"));
    assert!(scene.api.get(&daemon).await.is_some(), "the release is installed");
    let pods = scene
        .api
        .list(&core(
            NAMESPACE,
            "pods?labelSelector=app.kubernetes.io%2Fcomponent%3Dnode",
        ))
        .await;
    assert_eq!(pods.len(), 1, "{pods:?}");
    crate::api::text(&pods[0], "/metadata/name").to_owned()
}

/// Waits until the pod has written more, all of it in order and without a failure.
async fn writes_on(scene: &Scene<'_>, pod: &str) {
    let count = async || {
        let Ended { code, stdout, stderr } = scene.try_sh(pod, WRITTEN).await;
        assert_eq!(code, Some(0), "{pod} lost something: {stdout}{stderr}");
        stdout.trim().parse::<u64>().expect("wc prints a number")
    };
    let before = count().await;
    until(&format!("{pod} writes on"), async || {
        (count().await > before + 10).then_some(())
    })
    .await;
}
