//! The node: containerd, and kubelet on it.

use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::cluster::TYPE;
use crate::command::{run, succeed};
use crate::common::process::{Process, Start};
use crate::keys::WORKER;
use crate::network::NODE;
use crate::patience::until;
use crate::plane::Plane;
use crate::program::{kube, tied};
use crate::{images, path};

/// Where containerd answers. /run is the place's own.
const SOCKET: &str = "/run/containerd/containerd.sock";

/// What kubelet and the CNI programs write to whatever they are told, and what would stay on the machine.
pub(crate) const HIDDEN: [&str; 3] = ["/var/lib/cni", "/var/lib/kubelet", "/var/log/containers"];

/// A running node. Dropping it ends both programs; its containers end with the place.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) directory: PathBuf,
    containerd: Mutex<Process>,
    kubelet: Mutex<Process>,
    kubeconfig: String,
}

impl Worker {
    /// Starts one in this directory. `prepare` must have been called.
    pub(crate) fn start(directory: &Path, cgroup: &str, plane: &Plane) -> Self {
        let token = plane.keys.token(WORKER);
        let kubeconfig = plane.keys.kubeconfig("kubelet", &plane.server, token);
        network(directory);
        settings(directory, cgroup);
        let containerd = containerd(directory).spawn();
        Self {
            directory: directory.to_owned(),
            containerd: Mutex::new(containerd),
            kubelet: Mutex::new(kubelet(directory, &kubeconfig).spawn()),
            kubeconfig,
        }
    }

    /// Waits until the node is ready for pods.
    pub(crate) async fn ready(&self, plane: &Plane) {
        let node = path::whole(&format!("nodes/{}", name()));
        until("the node is ready", async || {
            for (what, process) in [("containerd", &self.containerd), ("kubelet", &self.kubelet)] {
                let mut process = process.lock().await;
                assert!(
                    !process.is_over(),
                    "{what} ended: {}",
                    last(&process.stderr())
                );
            }
            let node = plane.api.get(&node).await?;
            let conditions = node["status"]["conditions"].as_array()?.iter();
            let mut ready = conditions.filter(|c| c["type"] == "Ready");
            ready.any(|c| c["status"] == "True").then_some(())
        })
        .await;
    }

    /// Brings images of an archive in.
    pub(crate) async fn import(&self, archive: &Path) {
        until("containerd answers", async || {
            let ended = ctr(&["version"]).ended().await;
            (ended.code == Some(0)).then_some(())
        })
        .await;
        let archive = archive.display().to_string();
        succeed(ctr(&["images", "import", &archive])).await;
    }

    /// kubelet's directory.
    pub(crate) fn kubelet_dir(&self) -> PathBuf {
        kubelet_dir(&self.directory)
    }

    /// Kills kubelet and starts it again.
    pub(crate) async fn restart_kubelet(&self) {
        let mut kubelet = self.kubelet.lock().await;
        kubelet.signal(Signal::SIGKILL);
        until("kubelet has ended", async || {
            kubelet.is_over().then_some(())
        })
        .await;
        *kubelet = self::kubelet(&self.directory, &self.kubeconfig).spawn();
    }

    /// The lines of kubelet's log.
    pub(crate) async fn said(&self) -> Vec<(String, String)> {
        vec![
            ("kubelet".to_owned(), self.kubelet.lock().await.stderr()),
            (
                "containerd".to_owned(),
                self.containerd.lock().await.stderr(),
            ),
        ]
    }
}

/// The name of the node.
pub(crate) fn name() -> &'static str {
    WORKER.trim_start_matches("system:node:")
}

pub(crate) fn kubelet_dir(directory: &Path) -> PathBuf {
    directory.join("kubelet")
}

/// Makes of the place's mounts what a node needs: mounts that containers may share, and what both programs write to
/// that is not theirs.
pub(crate) async fn prepare(directory: &Path) {
    run("mount", &["--make-rshared", "/"]).await;
    run("mount", &["-t", "tmpfs", "tmpfs", "/run"]).await;
    let own = directory.join("own");
    std::fs::create_dir_all(&own).expect("the directory can be written");
    // kubelet would change these for the whole machine.
    for file in [
        "vm/overcommit_memory",
        "kernel/panic",
        "kernel/panic_on_oops",
    ] {
        let file = Path::new("/proc/sys").join(file);
        let copy = own.join(file.file_name().expect("it has one"));
        std::fs::copy(&file, &copy).expect("the directory can be written");
        bind(&copy, &file).await;
    }
    for hidden in HIDDEN.map(Path::new) {
        let own = own.join(hidden.file_name().expect("it has one"));
        std::fs::create_dir_all(&own).expect("the directory can be written");
        bind(&own, hidden).await;
    }
    // By its name does the API server find kubelet.
    let hosts = own.join("hosts");
    let names = format!("127.0.0.1 localhost\n{NODE} {}\n", name());
    std::fs::write(&hosts, names).expect("the directory can be written");
    bind(&hosts, Path::new("/etc/hosts")).await;
}

async fn bind(from: &Path, to: &Path) {
    let (from, to) = (from.display().to_string(), to.display().to_string());
    run("mount", &["--bind", &from, &to]).await;
}

/// A bridge for the pods.
fn network(directory: &Path) {
    let list = json!({
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [{
            "type": "bridge",
            "bridge": "pods",
            "isGateway": true,
            "ipam": {
                "type": "host-local",
                "dataDir": directory.join("cni-data"),
                "ranges": [[{"subnet": "10.98.0.0/24"}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }],
    });
    write(&directory.join("cni/pods.conflist"), &list.to_string());
}

fn settings(directory: &Path, cgroup: &str) {
    let of = |name: &str| directory.join(name);
    let containerd = format!(
        r#"version = 2
root = "{root}"
state = "/run/containerd"
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{bin}"
    conf_dir = "{cni}"
"#,
        root = of("containerd").display(),
        pause = images::PAUSE,
        bin = images::CNI,
        cni = of("cni").display(),
    );
    write(&of("containerd.toml"), &containerd);
    let kubelet: Value = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE,
        // Nobody else is in this network.
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{cgroup}"),
        "cgroupsPerQOS": false,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        "oomScoreAdj": 0,
        "evictionHard": {},
        "localStorageCapacityIsolation": false,
        "makeIPTablesUtilChains": false,
        "podLogsDir": of("logs"),
        "volumePluginDir": of("volume-plugins"),
        "resolvConf": "",
        // What a controller changes in the API is seen sooner.
        "syncFrequency": "2s",
        // A volume is neither mounted nor detached before the node's status has said whether it is in use.
        "nodeStatusUpdateFrequency": "1s",
        "shutdownGracePeriod": "0s",
    });
    write(&of("kubelet.json"), &kubelet.to_string());
    for name in ["logs", "volume-plugins"] {
        std::fs::create_dir_all(of(name)).expect("the directory can be written");
    }
}

fn containerd(directory: &Path) -> Start {
    let config = directory.join("containerd.toml").display().to_string();
    tied(Path::new("containerd")).args(["--config", &config])
}

fn kubelet(directory: &Path, kubeconfig: &str) -> Start {
    let of = |name: &str| directory.join(name).display().to_string();
    kube("kubelet").args([
        &format!("--config={}", of("kubelet.json")),
        &format!("--kubeconfig={kubeconfig}"),
        &format!("--root-dir={}", kubelet_dir(directory).display()),
        &format!("--cert-dir={}", of("kubelet-certificates")),
        &format!("--hostname-override={}", name()),
        &format!("--node-ip={NODE}"),
        // As a cloud's controller would say it.
        &format!("--node-labels=node.kubernetes.io/instance-type={TYPE}"),
    ])
}

/// containerd's own client, on the images of Kubernetes.
fn ctr(args: &[&str]) -> Start {
    let first = ["--address", SOCKET, "--namespace", "k8s.io"];
    Start::tied("ctr").args(first).args(args)
}

fn write(file: &Path, content: &str) {
    let above = file.parent().expect("it is in a directory");
    std::fs::create_dir_all(above).expect("the directory can be written");
    std::fs::write(file, content).expect("the directory can be written");
}

fn last(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
