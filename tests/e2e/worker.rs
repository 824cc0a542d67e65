//! A node: containerd and kubelet.

use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::cluster::TYPE;
use crate::command::{run, succeed};
use crate::common::process::{Process, Start};
use crate::keys::{SECOND_WORKER, SERVICE, WORKER};
use crate::network::{self, Network};
use crate::plane::{Plane, last_lines};
use crate::program::built;
use crate::site::Site;
use crate::wait::until;
use crate::{images, path};

/// The socket of containerd, in the /run of the sandbox.
const SOCKET: &str = "/run/containerd/containerd.sock";

/// Directories with fixed paths to which kubelet and CNI plugins write; the sandbox hides those of the machine.
pub(crate) const HIDDEN: [&str; 3] = ["/var/lib/cni", "/var/lib/kubelet", "/var/log/containers"];

/// A node. Dropping it terminates containerd and kubelet; its containers end with the sandbox.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) name: &'static str,
    /// The directory with the state of the cluster.
    pub(crate) directory: PathBuf,
    containerd: Mutex<Process>,
    kubelet: Mutex<Process>,
    environment: Environment,
}

/// The environment of its programs.
#[derive(Debug)]
struct Environment {
    name: &'static str,
    network: Network,
    directory: PathBuf,
    /// The directory of its files.
    own: PathBuf,
    kubeconfig: String,
    /// The second machine; none for the first one.
    site: Option<Site>,
}

impl Worker {
    /// Starts the first node. `prepare` must have been called.
    pub(crate) async fn start(directory: &Path, cgroup: &str, plane: &Plane) -> Self {
        let environment = Environment {
            name: name(WORKER),
            network: network::FIRST,
            directory: directory.to_owned(),
            own: directory.to_owned(),
            kubeconfig: kubeconfig(plane, WORKER, &plane.server),
            site: None,
        };
        Self::of(environment, cgroup).await
    }

    /// Starts the second node, on a second machine.
    pub(crate) async fn second(directory: &Path, cgroup: &str, plane: &Plane) -> Self {
        let own = directory.join(name(SECOND_WORKER));
        let site = Site::make(directory, &own).await;
        let environment = Environment {
            name: name(SECOND_WORKER),
            network: network::SECOND,
            directory: directory.to_owned(),
            own,
            kubeconfig: kubeconfig(plane, SECOND_WORKER, &format!("https://{SERVICE}")),
            site: Some(site),
        };
        Self::of(environment, &format!("{cgroup}.second")).await
    }

    async fn of(environment: Environment, cgroup: &str) -> Self {
        environment.write_network();
        environment.write_settings(cgroup);
        let containerd = environment.containerd().spawn();
        // kubelet exits if containerd does not respond.
        until("containerd responds", async || {
            let ended = environment.ctr(&["version"]).ended().await;
            (ended.code == Some(0)).then_some(())
        })
        .await;
        Self {
            name: environment.name,
            directory: environment.directory.clone(),
            containerd: Mutex::new(containerd),
            kubelet: Mutex::new(environment.kubelet().spawn()),
            environment,
        }
    }

    /// Waits until the node is ready for pods.
    pub(crate) async fn ready(&self, plane: &Plane) {
        let node = self.path();
        until("the node is ready", async || {
            for (what, process) in [("containerd", &self.containerd), ("kubelet", &self.kubelet)] {
                let mut process = process.lock().await;
                assert!(!process.is_over(), "{what} ended: {}", last_lines(&process));
            }
            let node = plane.api.get(&node).await?;
            let conditions = node["status"]["conditions"].as_array()?.iter();
            let mut ready = conditions.filter(|c| c["type"] == "Ready");
            ready.any(|c| c["status"] == "True").then_some(())
        })
        .await;
    }

    /// The API path of its Node.
    pub(crate) fn path(&self) -> String {
        path::cluster_scoped(&format!("nodes/{}", self.name))
    }

    /// Imports the images of an archive.
    pub(crate) async fn import(&self, archive: &Path) {
        let archive = archive.display().to_string();
        succeed(self.environment.ctr(&["images", "import", &archive])).await;
    }

    /// kubelet's directory in the namespaces of the node.
    pub(crate) fn kubelet_dir(&self) -> PathBuf {
        kubelet_dir(&self.directory)
    }

    /// kubelet's directory in the sandbox.
    pub(crate) fn own_kubelet_dir(&self) -> PathBuf {
        kubelet_dir(&self.environment.own)
    }

    /// The mount table of the node.
    pub(crate) fn mounts(&self) -> String {
        let pid = self.environment.site.as_ref().map(|site| site.pid().to_string());
        let file = format!("/proc/{}/mountinfo", pid.as_deref().unwrap_or("self"));
        std::fs::read_to_string(file).expect("the node runs")
    }

    /// Kills kubelet and restarts it.
    pub(crate) async fn restart_kubelet(&self) {
        self.off().await;
        self.on().await;
    }

    /// Kills kubelet, which stops the status reports of the node.
    pub(crate) async fn off(&self) {
        let mut kubelet = self.kubelet.lock().await;
        kubelet.signal(Signal::SIGKILL);
        until("kubelet has ended", async || kubelet.is_over().then_some(())).await;
    }

    /// Kills kubelet and all containers, and unmounts all volumes, as if the machine was switched off.
    pub(crate) async fn power_off(&self) {
        self.off().await;
        let script = format!(
            "ctr() {{ command ctr --address {SOCKET} --namespace k8s.io \"$@\"; }}
             for task in $(ctr tasks list --quiet); do ctr tasks kill --all --signal SIGKILL $task || true; done
             awk '$5 ~ /kubernetes.io.csi/ {{ print $5 }}' /proc/self/mountinfo | sort --reverse | xargs --no-run-if-empty \
                 --max-args=1 umount --lazy"
        );
        succeed(self.environment.program("bash").args(["-c", &script])).await;
    }

    /// Starts kubelet again.
    pub(crate) async fn on(&self) {
        *self.kubelet.lock().await = self.environment.kubelet().spawn();
    }

    /// Sets the interval of status reports, which takes effect at the next start of kubelet.
    pub(crate) fn set_status_frequency(&self, frequency: &str) {
        let file = self.environment.own.join("kubelet.json");
        let text = std::fs::read_to_string(&file).expect("the file exists");
        let mut settings: Value = serde_json::from_str(&text).expect("the file is JSON");
        settings["nodeStatusUpdateFrequency"] = json!(frequency);
        write(&file, &settings.to_string());
    }

    /// The logs of kubelet and containerd.
    pub(crate) async fn logs(&self) -> Vec<(String, String)> {
        let mut logs = Vec::new();
        for (name, process) in [("kubelet", &self.kubelet), ("containerd", &self.containerd)] {
            logs.push((format!("{name} of {}", self.name), process.lock().await.stderr()));
        }
        logs
    }
}

/// The node name in the user name of its kubelet.
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

/// Prepares the mounts of the sandbox: shared propagation, and private copies of files to which kubelet, containerd and
/// CNI plugins write.
pub(crate) async fn prepare(directory: &Path) {
    run("mount", &["--make-rshared", "/"]).await;
    run("mount", &["-t", "tmpfs", "tmpfs", "/run"]).await;
    let own = directory.join("own");
    std::fs::create_dir_all(&own).expect("the directory can be written");
    // kubelet sets these for the whole machine.
    for file in ["vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"] {
        let file = Path::new("/proc/sys").join(file);
        let copy = own.join(file.file_name().expect("the path has a name"));
        std::fs::copy(&file, &copy).expect("the directory can be written");
        bind(&copy, &file).await;
    }
    for hidden in HIDDEN.map(Path::new) {
        let own = own.join(hidden.file_name().expect("the path has a name"));
        std::fs::create_dir_all(&own).expect("the directory can be written");
        bind(&own, hidden).await;
    }
    // The API server connects to kubelets by name.
    let hosts = own.join("hosts");
    let (first, second) = (network::FIRST.node, network::SECOND.node);
    let (first_name, second_name) = (name(WORKER), name(SECOND_WORKER));
    let names = format!("127.0.0.1 localhost\n{first} {first_name}\n{second} {second_name}\n");
    std::fs::write(&hosts, names).expect("the directory can be written");
    bind(&hosts, Path::new("/etc/hosts")).await;
}

async fn bind(from: &Path, to: &Path) {
    let (from, to) = (from.display().to_string(), to.display().to_string());
    run("mount", &["--bind", &from, &to]).await;
}

impl Environment {
    /// Writes the CNI configuration: a bridge for the pods.
    fn write_network(&self) {
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

    fn write_settings(&self, cgroup: &str) {
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
            // No other process uses this network.
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
            // Unused, but without it every pod gets a warning event.
            "clusterDNS": ["10.96.0.10"],
            // Changes in the API take effect sooner.
            "syncFrequency": "2s",
            // Mounts and detaches wait until the node's status reports the volumes in use.
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
            // Set by the cloud controller manager of a real cluster.
            &format!("--node-labels=node.kubernetes.io/instance-type={TYPE}"),
        ])
    }

    /// The client of containerd, in the namespace of Kubernetes.
    fn ctr(&self, args: &[&str]) -> Start {
        let first = ["--address", SOCKET, "--namespace", "k8s.io"];
        self.program("ctr").args(first).args(args)
    }

    /// A program in the namespaces of the node.
    fn program(&self, name: &str) -> Start {
        match &self.site {
            Some(site) => site.start(name),
            None => Start::with_pdeathsig(name),
        }
    }
}

fn write(file: &Path, content: &str) {
    let above = file.parent().expect("the path has a parent");
    std::fs::create_dir_all(above).expect("the directory can be written");
    std::fs::write(file, content).expect("the directory can be written");
}
