//! `diskplugin-node`: only the roles of a node, with the same flags as in `diskplugin`.

use nix::sys::signal::Signal;

use crate::common::csi::socket;
use crate::common::process::{Start, diskplugin};

fn diskplugin_node<const N: usize>(args: [&str; N]) -> Start {
    Start::of(env!("CARGO_BIN_EXE_diskplugin-node")).args(args)
}

#[tokio::test]
async fn the_node_program_serves_the_node_and_exits_on_sigterm() {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let (endpoint, own) = (format!("unix://{}", socket.display()), dir.path().display());
    let start = diskplugin_node([
        "node",
        &format!("--endpoint={endpoint}"),
        "--node-id=i-one",
        "--zone=cn-beijing-a",
        &format!("--kubelet-dir={own}"),
        &format!("--state-dir={own}/state"),
    ]);
    let (process, _channel) = start.ready(&socket).await;
    process.signal(Signal::SIGTERM);
    let ended = process.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[tokio::test]
async fn its_roles_have_the_same_flags_as_in_diskplugin() {
    for role in ["node", "map"] {
        let own = diskplugin_node([role, "--help"]).ended().await;
        let whole = diskplugin([role, "--help"]).ended().await;
        assert_eq!((own.code, whole.code), (Some(0), Some(0)), "{role}");
        let named = own.stdout.replace("diskplugin-node", "diskplugin");
        assert_eq!(named, whole.stdout, "{role}");
    }
}

#[tokio::test]
async fn other_roles_are_rejected_with_the_available_ones() {
    for role in ["controller", "all-in-one", "demo", "mock-cloud"] {
        let ended = diskplugin_node([role]).ended().await;
        assert_eq!(ended.code, Some(64), "{role}");
        assert!(ended.stderr.contains(role), "{}", ended.stderr);
    }
    let bare = diskplugin_node([]).ended().await;
    assert!(
        bare.stderr.contains("node") && bare.stderr.contains("map"),
        "{}",
        bare.stderr
    );
}

#[tokio::test]
async fn an_invalid_setting_is_reported() {
    let ended = diskplugin_node([
        "node",
        "--node-id=i-one",
        "--metadata-endpoint=http://127.0.0.1:9",
    ])
    .ended()
    .await;
    assert_eq!(ended.code, Some(64), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("--zone is not set"),
        "{}",
        ended.stderr
    );
}
