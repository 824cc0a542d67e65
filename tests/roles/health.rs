//! `/healthz` and `/readyz`.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::csi::create;
use crate::common::fake::{Fake, KEY, SECRET};
use crate::common::wait::until;
use crate::http_client::HttpResponse;
use crate::running::{HTTP, Running, SOON, node, served};
use crate::shutdown::terminate_during_create;
use crate::text::{assert_failed, assert_has, assert_lacks};

fn keys(secret: &Path, value: &str) {
    std::fs::write(secret.join("access-key-id"), KEY).unwrap();
    std::fs::write(secret.join("access-key-secret"), value).unwrap();
}

/// Asserts the status, the result of a check, and parts of the text.
#[track_caller]
fn assert_check(response: &HttpResponse, status: u16, (check, is_ok): (&str, bool), parts: &[&str]) {
    let found = (response.status, response.is_ok(check));
    assert_eq!(found, (status, Some(is_ok)), "{response:?}");
    assert_has(&response.text, parts);
}

#[tokio::test]
async fn a_controller_is_not_ready_from_a_rejected_key_until_the_first_successful_call() {
    let (fake, secret) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    keys(secret.path(), SECRET);
    let flag = format!("--credentials-dir={}", secret.path().display());
    let controller = Running::of(|socket| fake.controller(socket).args([HTTP, &flag])).await;
    let response = controller.get("/readyz").await;
    assert_check(&response, 200, ("credentials", true), &[]);
    assert_eq!(response.json()["ready"], true);
    assert_eq!(response.names(), ["socket", "credentials", "cloud"]);
    let calls = fake.calls().await;
    let is_listing = |call: &Value| call["action"] == "DescribeDisks";
    assert!(
        calls.len() <= 1 && calls.iter().all(is_listing),
        "the check makes no call: {calls:?}"
    );

    keys(secret.path(), "wrong-and-hidden");
    create(&controller.channel, "pvc-1").await.unwrap_err();
    let response = controller.get("/readyz").await;
    let parts = [
        "SignatureDoesNotMatch",
        "check the secret of the access key",
        "RequestId",
    ];
    assert_check(&response, 503, ("credentials", false), &parts);
    assert_lacks(&response.text, &["wrong-and-hidden", SECRET, KEY]);
    // A restart would not help.
    assert_eq!(controller.get("/healthz").await.status, 200);

    keys(secret.path(), SECRET);
    create(&controller.channel, "pvc-1").await.unwrap();
    assert_check(
        &controller.get("/readyz").await,
        200,
        ("cloud", true),
        &["last response"],
    );
}

#[tokio::test]
async fn a_controller_without_a_key_is_not_ready_and_names_the_setting() {
    let fake = Fake::start(&[]).await;
    let flags = [HTTP, "--credentials=environment"];
    let controller = Running::of(|socket| fake.controller(socket).args(flags)).await;
    let response = controller.get("/readyz").await;
    assert_check(&response, 503, ("credentials", false), &["ACCESS_KEY_ID"]);
}

#[tokio::test]
async fn a_node_is_ready_if_devices_state_and_tools_are_available() {
    let dir = tempfile::tempdir().unwrap();
    let (state, tools) = (dir.path().join("state"), tools(&dir));
    let flag = format!("--state-dir={}", state.display());
    let node = Running::of(|socket| node(socket).env("PATH", &tools).args([HTTP, &flag])).await;
    let response = node.get("/readyz").await;
    let names = ["socket", "kernel", "capabilities", "devices", "state", "tools"];
    assert_eq!(response.names(), names);
    // Only root can mount.
    let expected = names.map(|name| Some(name != "capabilities" || is_root()));
    assert_eq!(names.map(|name| response.is_ok(name)), expected, "{response:?}");
    assert_eq!(response.status, if is_root() { 200 } else { 503 }, "{response:?}");
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_has(&response.text, &[&format!("Linux {}", release.trim())]);
    assert!(!state.exists(), "the check creates nothing");

    // The state directory is a file, and a program is missing.
    std::fs::write(&state, "").unwrap();
    std::fs::remove_file(tools.join("mkfs.xfs")).unwrap();
    let response = node.get("/readyz").await;
    let parts = [
        "--state-dir: ",
        "check whether the disk is full",
        "filesystem: mkfs.xfs; use",
    ];
    assert_check(&response, 503, ("state", false), &parts);
    let others = ["tools", "devices"].map(|name| response.is_ok(name));
    assert_eq!(others, [Some(false), Some(true)], "{response:?}");
}

pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

#[tokio::test]
async fn a_node_logs_at_the_start_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let tools = tools(&dir);
    std::fs::remove_file(tools.join("sfdisk")).unwrap();
    let flags = [HTTP, "--device-dir=/nowhere"];
    let node = Running::of(|socket| node(socket).env("PATH", &tools).args(flags)).await;
    let log = node.process.stderr();
    let device_dir = "--device-dir /nowhere is not a directory yet";
    assert_has(
        &log,
        &[device_dir, "the node is not ready", "filesystem: sfdisk; use", "tools"],
    );
    assert_lacks(&log, &["Linux"]);
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
    let kubelet = std::fs::canonicalize(dir.path()).unwrap().join("kubelet");
    let flag = format!("--kubelet-dir={}", kubelet.display());
    let start = |socket: &Path| node(socket).args([HTTP, "--require-shared-mounts", &flag]);
    let socket = dir.path().join("csi.sock");
    assert_failed(&start(&socket).ended().await, 64, &["is not a directory"]);
    std::fs::create_dir(&kubelet).unwrap();
    if is_shared(&kubelet) {
        let response = Running::of(start).await.get("/readyz").await;
        assert_eq!(response.is_ok("mounts"), Some(true), "{response:?}");
        return;
    }
    let parts = ["/kubelet/plugins", "is not shared", "mountPropagation: Bidirectional"];
    assert_failed(&start(&socket).ended().await, 64, &parts);
}

#[tokio::test]
async fn during_shutdown_the_process_is_alive_but_not_ready() {
    let (fake, controller) = served(&["--create-delay=4s"], &[]).await;
    let meanwhile = async {
        terminate_during_create(&fake, &controller).await;
        let response = until("/readyz fails", SOON, async || {
            let response = controller.get("/readyz").await;
            (response.status == 503).then_some(response)
        })
        .await;
        assert_has(&response.text, &["shutting down"]);
        assert_eq!(controller.get("/healthz").await.status, 200);
    };
    let (created, ()) = tokio::join!(create(&controller.channel, "pvc-1"), meanwhile);
    created.unwrap();
    assert_eq!(controller.process.ended().await.code, Some(0));
}
