//! `/healthz` and `/readyz`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::csi::{create, endpoint, socket};
use crate::common::fake::{Fake, KEY, SECRET};
use crate::common::process::{Start, diskplugin};
use crate::common::wait::until;
use crate::http_client::{address, get};

const SOON: Duration = Duration::from_secs(60);

pub(crate) fn node(socket: &Path) -> Start {
    diskplugin([
        "node",
        "--zone=cn-beijing-b",
        "--node-id=i-1",
        "--http-address=127.0.0.1:0",
        &endpoint(socket),
    ])
}

fn keys(secret: &Path, value: &str) {
    std::fs::create_dir_all(secret).unwrap();
    std::fs::write(secret.join("access-key-id"), KEY).unwrap();
    std::fs::write(secret.join("access-key-secret"), value).unwrap();
}

#[tokio::test]
async fn a_controller_is_not_ready_from_a_rejected_key_until_the_first_successful_call() {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let (socket, secret) = (socket(&dir), dir.path().join("secret"));
    keys(&secret, SECRET);
    let start = fake.controller(&socket).args([
        "--http-address=127.0.0.1:0",
        &format!("--credentials-dir={}", secret.display()),
    ]);
    let (controller, channel) = start.ready(&socket).await;
    let http = address(&controller).await;
    let response = get(&http, "/readyz").await;
    assert_eq!(
        (response.status, response.json()["ready"].as_bool()),
        (200, Some(true)),
        "{response:?}"
    );
    assert_eq!(response.names(), ["socket", "credentials", "cloud"]);
    let calls = fake.calls().await;
    let is_listing = |call: &Value| call["action"] == "DescribeDisks";
    assert!(
        calls.len() <= 1 && calls.iter().all(is_listing),
        "the check makes no call: {calls:?}"
    );

    keys(&secret, "wrong-and-hidden");
    create(&channel, "pvc-1").await.unwrap_err();
    let response = get(&http, "/readyz").await;
    assert_eq!(
        (response.status, response.is_ok("credentials")),
        (503, Some(false)),
        "{response:?}"
    );
    for part in [
        "SignatureDoesNotMatch",
        "check the secret of the access key",
        "RequestId",
    ] {
        assert!(response.text.contains(part), "no {part:?}: {response:?}");
    }
    for hidden in ["wrong-and-hidden", SECRET, KEY] {
        assert!(!response.text.contains(hidden), "{response:?}");
    }
    // A restart would not help.
    assert_eq!(get(&http, "/healthz").await.status, 200);

    keys(&secret, SECRET);
    create(&channel, "pvc-1").await.unwrap();
    let response = get(&http, "/readyz").await;
    assert_eq!(response.status, 200, "{response:?}");
    assert!(response.text.contains("last response"), "{response:?}");
}

#[tokio::test]
async fn a_controller_without_a_key_is_not_ready_and_names_the_setting() {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let socket = socket(&dir);
    let start = fake
        .controller(&socket)
        .args(["--http-address=127.0.0.1:0", "--credentials=environment"]);
    let (controller, _channel) = start.ready(&socket).await;
    let response = get(&address(&controller).await, "/readyz").await;
    assert_eq!(
        (response.status, response.is_ok("credentials")),
        (503, Some(false)),
        "{response:?}"
    );
    assert!(response.text.contains("ACCESS_KEY_ID"), "{response:?}");
}

#[tokio::test]
async fn a_node_is_ready_if_devices_state_and_tools_are_available() {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let (state, tools) = (dir.path().join("state"), tools(&dir));
    let start = node(&socket).env("PATH", &tools);
    let start = start.args([format!("--state-dir={}", state.display())]);
    let (node, _channel) = start.ready(&socket).await;
    let http = address(&node).await;
    let response = get(&http, "/readyz").await;
    let names = ["socket", "kernel", "capabilities", "devices", "state", "tools"];
    assert_eq!(response.names(), names);
    // Only root can mount.
    let expected = names.map(|name| Some(name != "capabilities" || is_root()));
    assert_eq!(names.map(|name| response.is_ok(name)), expected, "{response:?}");
    assert_eq!(response.status, if is_root() { 200 } else { 503 }, "{response:?}");
    assert!(response.text.contains(&format!("Linux {}", release())), "{response:?}");
    assert!(!state.exists(), "the check creates nothing");

    // The state directory is a file, and a program is missing.
    std::fs::write(&state, "").unwrap();
    std::fs::remove_file(tools.join("mkfs.xfs")).unwrap();
    let response = get(&http, "/readyz").await;
    let checks = ["state", "tools", "devices"].map(|name| response.is_ok(name));
    assert_eq!(
        (response.status, checks),
        (503, [Some(false), Some(false), Some(true)]),
        "{response:?}"
    );
    for part in [
        "--state-dir: ",
        "check whether the disk is full",
        "filesystem: mkfs.xfs; use",
    ] {
        assert!(response.text.contains(part), "no {part:?}: {response:?}");
    }
}

pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// The release of the kernel.
fn release() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    release.trim().to_owned()
}

#[tokio::test]
async fn a_node_logs_at_the_start_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let tools = tools(&dir);
    std::fs::remove_file(tools.join("sfdisk")).unwrap();
    let start = node(&socket).env("PATH", &tools).args(["--device-dir=/nowhere"]);
    let (node, _channel) = start.ready(&socket).await;
    let log = node.stderr();
    for part in [
        "--device-dir /nowhere is not a directory yet",
        "the node is not ready",
        "filesystem: sfdisk; use",
        "tools",
    ] {
        assert!(log.contains(part), "no {part:?}: {log}");
    }
    assert!(!log.contains("Linux"), "{log}");
}

/// A directory with all programs that a node executes, as empty files.
fn tools(dir: &TempDir) -> PathBuf {
    let tools = dir.path().join("tools");
    std::fs::create_dir(&tools).unwrap();
    let names = "blkid blockdev sfdisk partx e2fsck resize2fs mkfs.ext4 mkfs.ext3 mkfs.xfs xfs_growfs mkfs.btrfs btrfs";
    for name in names.split(' ') {
        std::fs::write(tools.join(name), "").unwrap();
    }
    tools
}

/// Whether the directory is on a shared mount, according to mountinfo.
fn is_shared(directory: &Path) -> bool {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mounts = table.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let above = mounts.filter(|fields| directory.starts_with(fields[4]));
    let topmost = above.max_by_key(|fields| Path::new(fields[4]).components().count());
    topmost.unwrap().iter().any(|field| field.starts_with("shared:"))
}

#[tokio::test]
async fn a_node_without_the_required_shared_mounts_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let kubelet = std::fs::canonicalize(dir.path()).unwrap().join("kubelet");
    let start = |kubelet: &Path| {
        let kubelet = format!("--kubelet-dir={}", kubelet.display());
        node(&socket).args(["--require-shared-mounts", &kubelet])
    };
    let ended = start(&kubelet).ended().await;
    assert_eq!(ended.code, Some(64), "{}", ended.stderr);
    assert!(ended.stderr.contains("is not a directory"), "{}", ended.stderr);
    std::fs::create_dir(&kubelet).unwrap();
    if is_shared(&kubelet) {
        let (node, _channel) = start(&kubelet).ready(&socket).await;
        let response = get(&address(&node).await, "/readyz").await;
        assert_eq!(response.is_ok("mounts"), Some(true), "{response:?}");
        return;
    }
    let ended = start(&kubelet).ended().await;
    assert_eq!(ended.code, Some(64), "{}", ended.stderr);
    for part in ["/kubelet/plugins", "is not shared", "mountPropagation: Bidirectional"] {
        assert!(ended.stderr.contains(part), "no {part:?}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn during_shutdown_the_process_is_alive_but_not_ready() {
    let fake = Fake::start(&["--create-delay=4s"]).await;
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let start = fake.controller(&socket).keys();
    let start = start.args(["--http-address=127.0.0.1:0"]);
    let (controller, channel) = start.ready(&socket).await;
    let http = address(&controller).await;
    let meanwhile = async {
        until("the cloud creates the disk", SOON, async || {
            (fake.count("CreateDisk").await == 1).then_some(())
        })
        .await;
        controller.signal(Signal::SIGTERM);
        let response = until("/readyz fails", SOON, async || {
            let response = get(&http, "/readyz").await;
            (response.status == 503).then_some(response)
        });
        let response = response.await;
        assert!(response.text.contains("shutting down"), "{response:?}");
        assert_eq!(get(&http, "/healthz").await.status, 200);
    };
    let (created, ()) = tokio::join!(create(&channel, "pvc-1"), meanwhile);
    created.unwrap();
    assert_eq!(controller.ended().await.code, Some(0));
}
