//! The registration with kubelet, with a simulated kubelet that only registers.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use diskplugin::csi::proto::GetPluginInfoRequest;
use diskplugin::csi::proto::identity_client::IdentityClient;
use diskplugin::csi::proto::pluginregistration::registration_client::RegistrationClient;
use diskplugin::csi::proto::pluginregistration::{InfoRequest, PluginInfo, RegistrationStatus};
use nix::sys::signal::Signal;
use tempfile::TempDir;
use tonic::transport::Channel;

use crate::common::csi::{endpoint, info, socket, try_connect};
use crate::common::process::{Start, diskplugin};
use crate::common::wait::until;
use crate::http_client::{address, get};
use crate::running::{self, HTTP, NO_METADATA, SOON, logged, wait};
use crate::text::{assert_failed, assert_has};

const NAME: &str = "diskplugin.csi.example";

struct Kubelet {
    root: TempDir,
}

impl Kubelet {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("registry")).unwrap();
        Self { root }
    }

    fn registry(&self) -> PathBuf {
        self.root.path().join("registry")
    }

    fn csi(&self) -> PathBuf {
        socket(&self.root)
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.registry().join(format!("{name}-reg.sock"))
    }

    /// A node that registers here.
    fn node(&self) -> Start {
        node(&self.csi(), &self.registry())
    }

    /// Waits for the registration socket and requests the plugin info.
    async fn discover(&self, name: &str) -> (RegistrationClient<Channel>, PluginInfo) {
        let socket = self.socket(name);
        until("the registration socket is served", SOON, async || {
            let mut client = RegistrationClient::new(try_connect(&socket).await?);
            let info = client.get_info(InfoRequest {}).await.ok()?;
            Some((client, info.into_inner()))
        })
        .await
    }

    /// Registers the driver, or rejects it for this reason.
    async fn notify(&self, error: Option<&str>) {
        let (mut client, info) = self.discover(NAME).await;
        assert_eq!(info.name, NAME);
        let status = RegistrationStatus {
            plugin_registered: error.is_none(),
            error: error.unwrap_or_default().to_owned(),
        };
        client.notify_registration_status(status).await.unwrap();
    }
}

fn node(csi: &Path, registry: &Path) -> Start {
    running::node(csi).args([format!("--registration-dir={}", registry.display())])
}

/// The name from GetPluginInfo.
async fn name(channel: Channel) -> String {
    let mut identity = IdentityClient::new(channel);
    let info = identity.get_plugin_info(GetPluginInfoRequest {}).await;
    info.unwrap().into_inner().name
}

/// The registration socket, which kubelet discovers when it is created.
fn identity(socket: &Path) -> Option<(u64, i64, i64)> {
    let socket = std::fs::metadata(socket).ok()?;
    Some((socket.ino(), socket.ctime(), socket.ctime_nsec()))
}

/// kubelet retries only with a new socket.
async fn wait_for_another(socket: &Path, before: Option<(u64, i64, i64)>) {
    wait("there is a new socket", async || {
        identity(socket).is_some_and(|found| Some(found) != before)
    })
    .await;
}

#[tokio::test]
async fn the_csi_socket_is_served_before_the_registration_socket() {
    let kubelet = Kubelet::new();
    let node = kubelet.node().spawn();
    let registration = kubelet.socket(NAME);
    wait("the registration socket exists", async || registration.exists()).await;
    // Without a retry, as kubelet calls.
    let channel = try_connect(&kubelet.csi()).await.expect("the CSI socket is served");
    assert_eq!(name(channel).await, NAME);
    let (_, info) = kubelet.discover(NAME).await;
    assert_eq!((info.r#type.as_str(), info.name.as_str()), ("CSIPlugin", NAME));
    assert_eq!(info.endpoint, kubelet.csi().display().to_string());
    assert_eq!(info.supported_versions, ["1.0.0"]);
    kubelet.notify(None).await;
    logged(&node, "registered with kubelet").await;
}

#[tokio::test]
async fn the_reported_name_and_socket_are_configurable() {
    let kubelet = Kubelet::new();
    let start = kubelet.node().args([
        "--driver-name=second.csi.example",
        "--kubelet-socket=/var/lib/kubelet/plugins/second/csi.sock",
    ]);
    let (_node, channel) = start.ready(&kubelet.csi()).await;
    let (_, info) = kubelet.discover("second.csi.example").await;
    assert_eq!(info.name, "second.csi.example");
    assert_eq!(info.endpoint, "/var/lib/kubelet/plugins/second/csi.sock");
    assert_eq!(name(channel).await, "second.csi.example");
}

#[tokio::test]
async fn a_rejection_is_reported_until_the_next_registration_succeeds() {
    let kubelet = Kubelet::new();
    let node = kubelet.node().args([HTTP]).spawn();
    let http = address(&node).await;
    let registration = async || {
        let response = get(&http, "/readyz").await;
        (response.status, response.is_ok("registration"), response.text)
    };
    kubelet.discover(NAME).await;
    let (status, is_ok, text) = registration().await;
    assert_eq!((status, is_ok), (503, Some(false)), "{text}");
    let first = identity(&kubelet.socket(NAME));
    kubelet.notify(Some("topology value collision")).await;
    let (status, is_ok, text) = registration().await;
    assert_eq!((status, is_ok), (503, Some(false)), "{text}");
    for part in ["topology value collision", "--kubelet-socket"] {
        assert_has(&text, &[part]);
        logged(&node, part).await;
    }
    assert_has(&node.stderr(), &["ERROR"]);
    wait_for_another(&kubelet.socket(NAME), first).await;
    kubelet.notify(None).await;
    let (_, is_ok, text) = registration().await;
    assert_eq!(is_ok, Some(true), "{text}");
    // The CSI socket is still served.
    assert!(try_connect(&kubelet.csi()).await.is_some());
}

#[tokio::test]
async fn a_restarted_kubelet_registers_the_driver_again() {
    let kubelet = Kubelet::new();
    let (_node, _channel) = kubelet.node().ready(&kubelet.csi()).await;
    for _ in 0..3 {
        kubelet.notify(None).await;
    }
}

#[tokio::test]
async fn shutdown_removes_both_sockets() {
    let kubelet = Kubelet::new();
    let (node, _channel) = kubelet.node().ready(&kubelet.csi()).await;
    kubelet.notify(None).await;
    node.signal(Signal::SIGTERM);
    let ended = node.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!kubelet.csi().exists());
    let left = std::fs::read_dir(kubelet.registry()).unwrap().count();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn the_sockets_of_a_killed_node_are_taken_over() {
    let kubelet = Kubelet::new();
    let (node, _channel) = kubelet.node().ready(&kubelet.csi()).await;
    kubelet.discover(NAME).await;
    node.signal(Signal::SIGKILL);
    node.ended().await;
    for socket in [kubelet.csi(), kubelet.socket(NAME)] {
        assert!(socket.exists(), "a killed process cannot remove it");
    }
    let (node, _channel) = kubelet.node().ready(&kubelet.csi()).await;
    kubelet.notify(None).await;
    logged(&node, "registered with kubelet").await;
}

#[tokio::test]
async fn an_invalid_directory_is_an_invalid_setting() {
    let kubelet = Kubelet::new();
    let file = kubelet.root.path().join("file");
    std::fs::write(&file, "").unwrap();
    let missing = "does not exist: set it to the directory plugins_registry";
    for (path, reason) in [
        (&kubelet.root.path().join("none"), missing),
        (&file, "is not a directory"),
    ] {
        assert_failed(&node(&kubelet.csi(), path).ended().await, 64, &[reason]);
    }
}

#[tokio::test]
async fn a_registration_socket_of_another_process_is_not_taken_over() {
    let kubelet = Kubelet::new();
    let (_first, _channel) = kubelet.node().ready(&kubelet.csi()).await;
    kubelet.discover(NAME).await;
    let other = kubelet.root.path().join("other.sock");
    let second = node(&other, &kubelet.registry()).ended().await;
    assert_failed(
        &second,
        1,
        &["cannot register with kubelet", "in use by a running process"],
    );
    kubelet.discover(NAME).await;
}

#[tokio::test]
async fn a_node_registers_again_when_its_categories_become_known() {
    let kubelet = Kubelet::new();
    let file = kubelet.root.path().join("types.json");
    let node = kubelet.node().args([
        "--instance-type=ecs.g6.large",
        &format!("--instance-types-file={}", file.display()),
        &format!("--state-dir={}", kubelet.root.path().join("state").display()),
    ]);
    let (process, channel) = node.ready(&kubelet.csi()).await;
    let categories = async || {
        let info = info(&channel).await.unwrap();
        let topology = info.accessible_topology.unwrap().segments;
        topology.keys().filter(|key| key.contains("cloud_")).count()
    };
    assert_eq!(categories().await, 0);
    kubelet.discover(NAME).await;
    let before = identity(&kubelet.socket(NAME));
    kubelet.notify(None).await;

    let text = r#"{"instanceTypes": {"ecs.g6.large": {"diskQuantity": 17, "categories": ["cloud_essd"]}}}"#;
    // Atomically, as kubelet updates a mounted ConfigMap.
    std::fs::write(file.with_extension("new"), text).unwrap();
    std::fs::rename(file.with_extension("new"), &file).unwrap();
    // Other NodeGetInfo calls do not count as a report to kubelet.
    assert_eq!(categories().await, 1);
    logged(&process, "registering again").await;
    wait_for_another(&kubelet.socket(NAME), before).await;
    assert_eq!(categories().await, 1);
    kubelet.notify(None).await;
    logged(&process, "registered with kubelet").await;
    assert_eq!(process.stderr().matches("registering again").count(), 1);
}

/// A machine outside of the cloud, or an instance whose network is not available yet: a restart would not help.
#[tokio::test]
async fn a_node_without_metadata_stays_alive_and_registers_when_they_are_available() {
    let kubelet = Kubelet::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let metadata = free.local_addr().unwrap();
    drop(free);
    let flags = [
        HTTP.to_owned(),
        format!("--metadata-endpoint=http://{metadata}/imds/i-one"),
        format!("--registration-dir={}", kubelet.registry().display()),
    ];
    let mut node = diskplugin(["node", &endpoint(&kubelet.csi())]).args(flags).spawn();
    let http = address(&node).await;
    let ready = until("/readyz is served", SOON, async || {
        let ready = get(&http, "/readyz").await;
        (ready.status == 503).then_some(ready)
    })
    .await;
    assert_eq!(ready.names(), ["location"]);
    assert_has(
        &ready.text,
        &["not an ECS instance", "--node-id is not set", "node.excludedNodeLabels"],
    );
    assert_has(&ready.text, &[&metadata.to_string()]);
    for path in ["/healthz", "/metrics"] {
        assert_eq!(get(&http, path).await.status, 200);
    }
    let sockets = [kubelet.csi(), kubelet.socket(NAME)];
    assert!(sockets.iter().all(|socket| !socket.exists()));
    assert!(!node.is_over(), "{}", node.stderr());

    let listen = format!("--listen={metadata}");
    let _cloud = diskplugin(["mock-cloud", &listen, "--nodes=i-one=cn-beijing-b"]).spawn();
    let channel = node.ready(&kubelet.csi()).await;
    assert_eq!(info(&channel).await.unwrap().node_id, "i-one");
    kubelet.discover(NAME).await;
    let ready = get(&http, "/readyz").await;
    assert_eq!(ready.is_ok("location"), None, "{ready:?}");
    assert_eq!(ready.is_ok("socket"), Some(true), "{ready:?}");
    assert_eq!(
        node.stderr().matches("not an ECS instance").count(),
        1,
        "{}",
        node.stderr()
    );
    drop(node);

    let node = diskplugin(["node", NO_METADATA, &endpoint(&kubelet.csi())]).spawn();
    logged(&node, "not an ECS instance").await;
    node.signal(Signal::SIGTERM);
    assert_eq!(node.ended().await.code, Some(0));
}
