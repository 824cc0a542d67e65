//! The registration with kubelet, with a kubelet that only registers.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use diskplugin::csi::proto::GetPluginInfoRequest;
use diskplugin::csi::proto::identity_client::IdentityClient;
use diskplugin::csi::proto::pluginregistration::registration_client::RegistrationClient;
use diskplugin::csi::proto::pluginregistration::{InfoRequest, PluginInfo, RegistrationStatus};
use nix::sys::signal::Signal;
use tempfile::TempDir;
use tonic::transport::Channel;

use crate::common::csi::{endpoint, info, socket, try_connect};
use crate::common::process::{Process, Start, diskplugin};
use crate::common::wait::until;
use crate::health::{Told, address, ask};

const SOON: Duration = Duration::from_secs(60);

const NAME: &str = "diskplugin.csi.example";

/// kubelet's directories.
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

    /// Waits for a registration, and asks it who it is.
    async fn discover(&self, name: &str) -> (RegistrationClient<Channel>, PluginInfo) {
        let socket = self.socket(name);
        until("a registration is offered", SOON, async || {
            let mut client = RegistrationClient::new(try_connect(&socket).await?);
            let info = client.get_info(InfoRequest {}).await.ok()?;
            Some((client, info.into_inner()))
        })
        .await
    }
}

fn node(csi: &Path, registry: &Path) -> Start {
    let registry = format!("--registration-dir={}", registry.display());
    diskplugin([
        "node",
        "--zone=cn-beijing-b",
        "--node-id=i-1",
        &endpoint(csi),
        &registry,
    ])
}

/// What the driver calls itself.
async fn name(channel: Channel) -> String {
    let mut identity = IdentityClient::new(channel);
    let info = identity.get_plugin_info(GetPluginInfoRequest {}).await;
    info.unwrap().into_inner().name
}

async fn say(client: &mut RegistrationClient<Channel>, error: Option<&str>) {
    let status = RegistrationStatus {
        plugin_registered: error.is_none(),
        error: error.unwrap_or_default().to_owned(),
    };
    client.notify_registration_status(status).await.unwrap();
}

async fn logs(process: &Process, text: &str) {
    until(&format!("it logs {text:?}"), SOON, async || {
        process.stderr().contains(text).then_some(())
    })
    .await;
}

#[tokio::test]
async fn whoever_finds_the_registration_is_answered_on_the_csi_socket_at_once() {
    let kubelet = Kubelet::new();
    let node = kubelet.node().spawn();
    let registration = kubelet.socket(NAME);
    until(
        "the socket of the registration is there",
        SOON,
        async || registration.exists().then_some(()),
    )
    .await;
    // The first try counts: kubelet makes no second one.
    let channel = try_connect(&kubelet.csi())
        .await
        .expect("it listens already");
    assert_eq!(name(channel).await, NAME);
    let (mut client, info) = kubelet.discover(NAME).await;
    assert_eq!(
        (info.r#type.as_str(), info.name.as_str()),
        ("CSIPlugin", NAME)
    );
    assert_eq!(info.endpoint, kubelet.csi().display().to_string());
    assert_eq!(info.supported_versions, ["1.0.0"]);
    say(&mut client, None).await;
    logs(&node, "registered with kubelet").await;
}

#[tokio::test]
async fn name_and_socket_are_told_as_they_are_set() {
    let kubelet = Kubelet::new();
    let start = kubelet.node().args([
        "--driver-name=second.csi.example",
        "--kubelet-socket=/var/lib/kubelet/plugins/second/csi.sock",
    ]);
    let (_node, channel) = start.ready(&kubelet.csi()).await;
    let (_, info) = kubelet.discover("second.csi.example").await;
    assert_eq!(
        (info.name.as_str(), info.endpoint.as_str()),
        (
            "second.csi.example",
            "/var/lib/kubelet/plugins/second/csi.sock"
        )
    );
    assert_eq!(name(channel).await, "second.csi.example");
}

#[tokio::test]
async fn a_refusal_is_told_with_its_words_and_ends_with_the_next_registration() {
    let kubelet = Kubelet::new();
    let node = kubelet.node().args(["--http-address=127.0.0.1:0"]).spawn();
    let http = address(&node).await;
    let (mut client, _) = kubelet.discover(NAME).await;
    let told = ask(&http, "/readyz").await;
    assert_eq!(
        (told.status, told.is_ok("registration")),
        (503, Some(false)),
        "{told:?}"
    );
    let first = std::fs::metadata(kubelet.socket(NAME)).unwrap().ino();
    say(&mut client, Some("topology value collision")).await;
    let told = ask(&http, "/readyz").await;
    assert_eq!(
        (told.status, told.is_ok("registration")),
        (503, Some(false)),
        "{told:?}"
    );
    for part in ["topology value collision", "--kubelet-socket"] {
        assert!(told.text.contains(part), "{told:?}");
        logs(&node, part).await;
    }
    assert!(node.stderr().contains("ERROR"), "{}", node.stderr());
    // kubelet takes it up again only when the socket comes anew.
    until("another socket is there", SOON, async || {
        let found = std::fs::metadata(kubelet.socket(NAME)).ok()?;
        (found.ino() != first).then_some(())
    })
    .await;
    let (mut client, _) = kubelet.discover(NAME).await;
    say(&mut client, None).await;
    let told: Told = ask(&http, "/readyz").await;
    assert_eq!(told.is_ok("registration"), Some(true), "{told:?}");
    // The node goes on meanwhile: no volume notices.
    assert!(try_connect(&kubelet.csi()).await.is_some());
}

#[tokio::test]
async fn a_kubelet_that_was_restarted_asks_again_and_is_answered() {
    let kubelet = Kubelet::new();
    let (_node, _channel) = kubelet.node().ready(&kubelet.csi()).await;
    for _ in 0..3 {
        let (mut client, info) = kubelet.discover(NAME).await;
        assert_eq!(info.name, NAME);
        say(&mut client, None).await;
    }
}

#[tokio::test]
async fn a_stop_takes_both_sockets_away() {
    let kubelet = Kubelet::new();
    let (node, _channel) = kubelet.node().ready(&kubelet.csi()).await;
    let (mut client, _) = kubelet.discover(NAME).await;
    say(&mut client, None).await;
    node.signal(Signal::SIGTERM);
    let ended = node.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!kubelet.csi().exists());
    let left = std::fs::read_dir(kubelet.registry()).unwrap().count();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn the_sockets_of_a_killed_node_hinder_no_start() {
    let kubelet = Kubelet::new();
    let (node, _channel) = kubelet.node().ready(&kubelet.csi()).await;
    kubelet.discover(NAME).await;
    node.signal(Signal::SIGKILL);
    node.ended().await;
    assert!(
        kubelet.socket(NAME).exists(),
        "a killed process cannot remove it"
    );
    let (node, _channel) = kubelet.node().ready(&kubelet.csi()).await;
    let (mut client, _) = kubelet.discover(NAME).await;
    say(&mut client, None).await;
    logs(&node, "registered with kubelet").await;
}

#[tokio::test]
async fn a_wrong_directory_or_name_is_a_wrong_setting() {
    let kubelet = Kubelet::new();
    let none = kubelet.root.path().join("none");
    let file = kubelet.root.path().join("file");
    std::fs::write(&file, "").unwrap();
    let ends = [
        (
            node(&kubelet.csi(), &none),
            "does not exist: it is kubelet's directory plugins_registry",
        ),
        (node(&kubelet.csi(), &file), "is no directory"),
        (
            node(&kubelet.csi(), Path::new("registry")),
            "an absolute path",
        ),
        (
            kubelet.node().args(["--kubelet-socket=csi.sock"]),
            "an absolute path",
        ),
        (
            kubelet.node().args(["--driver-name=No/Name"]),
            "lower-case letters",
        ),
    ];
    for (start, told) in ends {
        let ended = start.ended().await;
        assert_eq!(ended.code, Some(64), "{}", ended.stderr);
        assert!(ended.stderr.contains(told), "no {told:?}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn a_registration_that_another_process_serves_is_left_to_it() {
    let kubelet = Kubelet::new();
    let (_first, _channel) = kubelet.node().ready(&kubelet.csi()).await;
    kubelet.discover(NAME).await;
    let other = kubelet.root.path().join("other.sock");
    let second = node(&other, &kubelet.registry()).ended().await;
    assert_eq!(second.code, Some(1), "{}", second.stderr);
    for told in [
        "cannot register with kubelet",
        "in use by a running process",
    ] {
        assert!(second.stderr.contains(told), "{}", second.stderr);
    }
    kubelet.discover(NAME).await;
}

#[tokio::test]
async fn a_node_that_learns_its_categories_late_is_registered_anew() {
    let kubelet = Kubelet::new();
    let file = kubelet.root.path().join("types.json");
    let node = kubelet.node().args([
        "--instance-type=ecs.g6.large",
        &format!("--instance-types-file={}", file.display()),
        &format!(
            "--state-dir={}",
            kubelet.root.path().join("state").display()
        ),
    ]);
    let (process, channel) = node.ready(&kubelet.csi()).await;
    let categories = async || {
        let info = info(&channel).await.unwrap();
        let topology = info.accessible_topology.unwrap().segments;
        topology.keys().filter(|key| key.contains("cloud_")).count()
    };
    let (mut client, _) = kubelet.discover(NAME).await;
    assert_eq!(categories().await, 0);
    let made = || {
        let socket = std::fs::metadata(kubelet.socket(NAME)).ok()?;
        Some((socket.ctime(), socket.ctime_nsec()))
    };
    let before = made().unwrap();
    say(&mut client, None).await;

    let text = r#"{"instanceTypes": {"ecs.g6.large": {"diskQuantity": 17, "categories": ["cloud_essd"]}}}"#;
    // As kubelet brings a ConfigMap: all at once.
    std::fs::write(file.with_extension("new"), text).unwrap();
    std::fs::rename(file.with_extension("new"), &file).unwrap();
    // A question between does not hide that kubelet was never told.
    assert_eq!(categories().await, 1);
    logs(&process, "it is registered anew").await;
    until("another socket is there", SOON, async || {
        (made()? != before).then_some(())
    })
    .await;
    let (mut client, _) = kubelet.discover(NAME).await;
    assert_eq!(categories().await, 1);
    say(&mut client, None).await;
    logs(&process, "registered with kubelet").await;
    assert_eq!(process.stderr().matches("it is registered anew").count(), 1);
}
