//! The control plane: etcd, the API server, the controller manager, the scheduler, and the snapshot controller.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::address::Address;
use crate::api::Api;
use crate::common::process::{Ended, Process, Start};
use crate::keys::Keys;
use crate::program::{built, kube, tied};

/// The audit log has the calls of all ServiceAccounts of this namespace.
pub(crate) const NAMESPACE: &str = "storage";
/// The user with all permissions.
const ADMIN: &str = "admin";
/// Timeout of a start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(240);

/// A running control plane. Dropping it terminates its processes.
#[derive(Debug)]
pub(crate) struct Plane {
    pub(crate) address: Address,
    pub(crate) keys: Keys,
    pub(crate) server: String,
    pub(crate) api: Api,
    etcd: String,
    apiserver: Mutex<Process>,
    others: Mutex<Vec<(&'static str, Process)>>,
    directory: TempDir,
}

impl Plane {
    /// Starts a control plane, and waits until the API server is ready. A node without heartbeats for the grace period
    /// is not ready.
    pub(crate) async fn start(node_monitor_grace_period: &str) -> Self {
        let (address, directory) = (Address::claim(), directory());
        let keys = Keys::make(directory.path(), address.ip());
        let server = format!("https://{}", address.listen());
        let api = Api::new(&server, &keys.authority, keys.token(ADMIN));
        let etcd = format!("http://{}", address.listen());
        let store = store(&etcd, &address, directory.path());
        let apiserver = serve(&server, &etcd, &keys, directory.path()).spawn();
        let plane = Self {
            address,
            keys,
            server,
            api,
            etcd,
            apiserver: Mutex::new(apiserver),
            others: Mutex::new(vec![("etcd", store.spawn())]),
            directory,
        };
        let token = plane.keys.token(ADMIN);
        plane.keys.kubeconfig(ADMIN, &plane.server, token);
        plane.ready().await;
        plane.control(node_monitor_grace_period).await;
        plane.snapshots().await;
        plane
    }

    /// Waits until the API server is ready.
    async fn ready(&self) {
        let end = Instant::now() + START_TIMEOUT;
        while !self.api.is_ready().await {
            let mut apiserver = self.apiserver.lock().await;
            let (in_time, log) = (Instant::now() < end, last_lines(&apiserver));
            assert!(in_time, "no API server after {START_TIMEOUT:?}: {log}");
            assert!(!apiserver.is_over(), "the API server exited: {log}");
            drop(apiserver);
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Starts controller manager and scheduler.
    async fn control(&self, node_monitor_grace_period: &str) {
        let user = |name: &str| {
            self.keys
                .kubeconfig(&name.replace(':', "-"), &self.server, self.keys.token(name))
        };
        let controllers = kube("kube-controller-manager").args([
            "--leader-elect=false",
            "--secure-port=0",
            // Pods and nodes have no network and no cloud provider.
            "--controllers=*,-nodeipam,-route,-service,-cloud-node-lifecycle",
            "--use-service-account-credentials",
            &format!("--node-monitor-grace-period={node_monitor_grace_period}"),
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            &format!("--kubeconfig={}", user("system:kube-controller-manager")),
            &format!("--service-account-private-key-file={}", self.keys.path("accounts.key")),
            &format!("--root-ca-file={}", self.keys.path("ca.crt")),
        ]);
        let scheduler = kube("kube-scheduler").args([
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            &format!("--kubeconfig={}", user("system:kube-scheduler")),
        ]);
        self.others.lock().await.extend([
            ("kube-controller-manager", controllers.spawn()),
            ("kube-scheduler", scheduler.spawn()),
        ]);
    }

    /// Creates the snapshot CRDs and starts the snapshot controller.
    async fn snapshots(&self) {
        let crds = built("crd").display().to_string();
        self.apply(&["--filename", &crds]).await;
        let controller = tied(&built("snapshot-controller")).args([
            "--feature-gates=CSIVolumeGroupSnapshot=true",
            "--retry-interval-start=200ms",
            &format!("--kubeconfig={}", self.kubeconfig()),
        ]);
        let mut others = self.others.lock().await;
        others.push(("snapshot-controller", controller.spawn()));
    }

    /// Server-side `kubectl apply`.
    pub(crate) async fn apply(&self, args: &[&str]) {
        let ended = self.kubectl(["apply", "--server-side"].iter().chain(args)).await;
        assert_eq!(ended.code, Some(0), "kubectl apply {args:?}: {}", ended.stderr);
    }

    /// The kubeconfig of the administrator.
    pub(crate) fn kubeconfig(&self) -> String {
        self.keys.path(&format!("{ADMIN}.kubeconfig"))
    }

    /// A directory of this name, which is deleted with the cluster.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::create_dir_all(&path).expect("the directory can be written");
        path
    }

    /// kubectl as the administrator.
    pub(crate) async fn kubectl<A: AsRef<str>>(&self, args: impl IntoIterator<Item = A>) -> Ended {
        let home = self.directory("kubectl");
        let start = kube("kubectl")
            .env("HOME", home)
            .args(["--kubeconfig", &self.kubeconfig()]);
        start.args(args).ended().await
    }

    /// Kills the API server with SIGKILL, and starts it at the same address.
    pub(crate) async fn restart_apiserver(&self) {
        self.restart_apiserver_after(Duration::ZERO).await;
    }

    /// The same, with a pause before the start.
    pub(crate) async fn restart_apiserver_after(&self, pause: Duration) {
        let mut apiserver = self.apiserver.lock().await;
        apiserver.signal(nix::sys::signal::Signal::SIGKILL);
        while !apiserver.is_over() {
            sleep(Duration::from_millis(10)).await;
        }
        sleep(pause).await;
        *apiserver = serve(&self.server, &self.etcd, &self.keys, self.directory.path()).spawn();
        drop(apiserver);
        self.ready().await;
    }

    /// The audit log of the calls of the release's ServiceAccounts.
    pub(crate) fn audit(&self) -> String {
        let log = self.directory.path().join("audit.log");
        std::fs::read_to_string(log).expect("the API server writes the audit log")
    }

    /// The name and the log of each process.
    pub(crate) async fn logs(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for (name, process) in self.others.lock().await.iter_mut() {
            let exited = if process.is_over() { " (exited)" } else { "" };
            all.push((format!("{name}{exited}"), process.stderr()));
        }
        let apiserver = self.apiserver.lock().await;
        all.push(("kube-apiserver".to_owned(), apiserver.stderr()));
        all
    }
}

/// The last lines of the log of a process.
pub(crate) fn last_lines(process: &Process) -> String {
    let text = process.stderr();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

fn directory() -> TempDir {
    let new = tempfile::Builder::new().prefix("diskplugin-cluster.").tempdir();
    new.expect("a temporary directory")
}

fn store(etcd: &str, address: &Address, directory: &Path) -> Start {
    let peer = format!("http://{}", address.listen());
    kube("etcd").args([
        &format!("--data-dir={}", directory.join("etcd").display()),
        &format!("--listen-client-urls={etcd}"),
        &format!("--advertise-client-urls={etcd}"),
        &format!("--listen-peer-urls={peer}"),
        &format!("--initial-advertise-peer-urls={peer}"),
        &format!("--initial-cluster=default={peer}"),
        // The data need not survive a crash of the machine.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ])
}

fn serve(server: &str, etcd: &str, keys: &Keys, directory: &Path) -> Start {
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "Metadata", "userGroups": [format!("system:serviceaccounts:{NAMESPACE}")]},
            {"level": "None"},
        ],
    });
    let file = directory.join("audit-policy.json");
    std::fs::write(&file, policy.to_string()).expect("the directory can be written");
    let (ip, port) = server
        .trim_start_matches("https://")
        .split_once(':')
        .expect("an address and a port");
    kube("kube-apiserver").args([
        &format!("--bind-address={ip}"),
        &format!("--advertise-address={ip}"),
        &format!("--secure-port={port}"),
        &format!("--etcd-servers={etcd}"),
        &format!("--cert-dir={}", directory.display()),
        &format!("--tls-cert-file={}", keys.path("server.crt")),
        &format!("--tls-private-key-file={}", keys.path("server.key")),
        &format!("--token-auth-file={}", keys.path("tokens.csv")),
        &format!("--service-account-issuer={server}"),
        &format!("--service-account-signing-key-file={}", keys.path("accounts.key")),
        &format!("--service-account-key-file={}", keys.path("accounts.pub")),
        "--service-cluster-ip-range=10.96.0.0/16",
        // The reconciler would publish a loopback address.
        "--endpoint-reconciler-type=none",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged",
        &format!("--audit-policy-file={}", file.display()),
        &format!("--audit-log-path={}", directory.join("audit.log").display()),
        // Tests read the log right after the call.
        "--audit-log-mode=blocking-strict",
    ])
}
