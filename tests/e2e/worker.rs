//! The node: containerd, and kubelet on it.

use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::cluster::TYPE;
use crate::command::{run, succeed};
use crate::common::process::{Process, Start};
use crate::keys::{SECOND_WORKER, SERVICE, WORKER};
use crate::network::{self, Network};
use crate::plane::Plane;
use crate::program::built;
use crate::site::Site;
use crate::wait::until;
use crate::{images, path};

/// Where containerd answers. /run is the place's own.
const SOCKET: &str = "/run/containerd/containerd.sock";

/// What kubelet and the CNI programs write to whatever they are told, and what would stay on the machine.
pub(crate) const HIDDEN: [&str; 3] = ["/var/lib/cni", "/var/lib/kubelet", "/var/log/containers"];

/// A node: containerd and kubelet. Dropping it ends both; its containers end with the place.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) name: &'static str,
    /// The directory with the state of the cluster.
    pub(crate) directory: PathBuf,
    containerd: Mutex<Process>,
    kubelet: Mutex<Process>,
    make: Make,
}

/// What its programs are started with.
#[derive(Debug)]
struct Make {
    name: &'static str,
    network: Network,
    directory: PathBuf,
    /// Where its own files are.
    own: PathBuf,
    kubeconfig: String,
    /// Where it is, if not in the place itself.
    site: Option<Site>,
}

impl Worker {
    /// Starts the first in this directory. `prepare` must have been called.
    pub(crate) async fn start(directory: &Path, cgroup: &str, plane: &Plane) -> Self {
        let make = Make {
            name: name(WORKER),
            network: network::FIRST,
            directory: directory.to_owned(),
            own: directory.to_owned(),
            kubeconfig: kubeconfig(plane, WORKER, &plane.server),
            site: None,
        };
        Self::of(make, cgroup).await
    }

    /// Starts a second one, on a machine of its own.
    pub(crate) async fn second(directory: &Path, cgroup: &str, plane: &Plane) -> Self {
        let own = directory.join(name(SECOND_WORKER));
        let site = Site::make(directory, &own).await;
        let make = Make {
            name: name(SECOND_WORKER),
            network: network::SECOND,
            directory: directory.to_owned(),
            own,
            kubeconfig: kubeconfig(plane, SECOND_WORKER, &format!("https://{SERVICE}")),
            site: Some(site),
        };
        Self::of(make, &format!("{cgroup}.second")).await
    }

    async fn of(make: Make, cgroup: &str) -> Self {
        make.network();
        make.settings(cgroup);
        let containerd = make.containerd().spawn();
        // kubelet ends where nobody answers.
        until("containerd answers", async || {
            let ended = make.ctr(&["version"]).ended().await;
            (ended.code == Some(0)).then_some(())
        })
        .await;
        Self {
            name: make.name,
            directory: make.directory.clone(),
            containerd: Mutex::new(containerd),
            kubelet: Mutex::new(make.kubelet().spawn()),
            make,
        }
    }

    /// Waits until the node is ready for pods.
    pub(crate) async fn ready(&self, plane: &Plane) {
        let node = path::cluster_scoped(&format!("nodes/{}", self.name));
        until("the node is ready", async || {
            for (what, process) in [("containerd", &self.containerd), ("kubelet", &self.kubelet)] {
                let mut process = process.lock().await;
                assert!(!process.is_over(), "{what} ended: {}", last(&process.stderr()));
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
        let archive = archive.display().to_string();
        succeed(self.make.ctr(&["images", "import", &archive])).await;
    }

    /// kubelet's directory, as its programs see it.
    pub(crate) fn kubelet_dir(&self) -> PathBuf {
        kubelet_dir(&self.directory)
    }

    /// Where that is for everybody else.
    pub(crate) fn own_kubelet_dir(&self) -> PathBuf {
        kubelet_dir(&self.make.own)
    }

    /// What is mounted there.
    pub(crate) fn mounts(&self) -> String {
        let pid = self.make.site.as_ref().map(|site| site.pid().to_string());
        let file = format!("/proc/{}/mountinfo", pid.as_deref().unwrap_or("self"));
        std::fs::read_to_string(file).expect("it is there as long as the node")
    }

    /// Kills kubelet and starts it again.
    pub(crate) async fn restart_kubelet(&self) {
        self.off().await;
        self.on().await;
    }

    /// Kills kubelet, so that the node reports no status any more.
    pub(crate) async fn off(&self) {
        let mut kubelet = self.kubelet.lock().await;
        kubelet.signal(Signal::SIGKILL);
        until("kubelet has ended", async || kubelet.is_over().then_some(())).await;
    }

    /// Starts kubelet again.
    pub(crate) async fn on(&self) {
        *self.kubelet.lock().await = self.make.kubelet().spawn();
    }

    /// How often kubelet reports the node's status, from its next start on.
    pub(crate) fn set_status_frequency(&self, frequency: &str) {
        let file = self.make.own.join("kubelet.json");
        let text = std::fs::read_to_string(&file).expect("kubelet runs with it");
        let mut settings: Value = serde_json::from_str(&text).expect("it was written as JSON");
        settings["nodeStatusUpdateFrequency"] = json!(frequency);
        write(&file, &settings.to_string());
    }

    /// The lines of kubelet's log.
    pub(crate) async fn logs(&self) -> Vec<(String, String)> {
        vec![
            (format!("kubelet of {}", self.name), self.kubelet.lock().await.stderr()),
            (
                format!("containerd of {}", self.name),
                self.containerd.lock().await.stderr(),
            ),
        ]
    }
}

/// The name of a node by the user that its kubelet is.
fn name(user: &'static str) -> &'static str {
    user.trim_start_matches("system:node:")
}

fn kubeconfig(plane: &Plane, user: &str, server: &str) -> String {
    let token = plane.keys.token(user);
    plane.keys.kubeconfig(&user.replace(':', "-"), server, token)
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
    for file in ["vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"] {
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
    // By its name does the API server find a kubelet.
    let hosts = own.join("hosts");
    let names = format!(
        "127.0.0.1 localhost\n{} {}\n{} {}\n",
        network::FIRST.node,
        name(WORKER),
        network::SECOND.node,
        name(SECOND_WORKER)
    );
    std::fs::write(&hosts, names).expect("the directory can be written");
    bind(&hosts, Path::new("/etc/hosts")).await;
}

async fn bind(from: &Path, to: &Path) {
    let (from, to) = (from.display().to_string(), to.display().to_string());
    run("mount", &["--bind", &from, &to]).await;
}

impl Make {
    /// A bridge for the pods.
    fn network(&self) {
        let list = json!({
            "cniVersion": "1.0.0",
            "name": "pods",
            "plugins": [{
                "type": "bridge",
                "bridge": "pods",
                "isGateway": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": self.own.join("cni-data"),
                    "ranges": [[{"subnet": self.network.pods()}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            }],
        });
        write(&self.own.join("cni/pods.conflist"), &list.to_string());
    }

    fn settings(&self, cgroup: &str) {
        let of = |name: &str| self.own.join(name);
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
            "address": self.network.node,
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
            // Nobody answers there, and nobody asks; without it every pod gets a warning.
            "clusterDNS": ["10.96.0.10"],
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

    fn containerd(&self) -> Start {
        let config = self.own.join("containerd.toml").display().to_string();
        self.program("containerd").args(["--config", &config])
    }

    fn kubelet(&self) -> Start {
        let of = |name: &str| self.own.join(name).display().to_string();
        let kubelet = self.program(&built("kube").display().to_string());
        kubelet.args([
            "kubelet",
            &format!("--config={}", of("kubelet.json")),
            &format!("--kubeconfig={}", self.kubeconfig),
            &format!("--root-dir={}", kubelet_dir(&self.directory).display()),
            &format!("--cert-dir={}", of("kubelet-certificates")),
            &format!("--hostname-override={}", self.name),
            &format!("--node-ip={}", self.network.node),
            // As a cloud's controller would say it.
            &format!("--node-labels=node.kubernetes.io/instance-type={TYPE}"),
        ])
    }

    /// containerd's own client, on the images of Kubernetes.
    fn ctr(&self, args: &[&str]) -> Start {
        let first = ["--address", SOCKET, "--namespace", "k8s.io"];
        self.program("ctr").args(first).args(args)
    }

    /// One of its programs.
    fn program(&self, name: &str) -> Start {
        match &self.site {
            Some(site) => site.start(name),
            None => Start::with_pdeathsig(name),
        }
    }
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
