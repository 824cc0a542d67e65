//! Ownership of the CSI socket.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::common::csi::{endpoint, info, socket};
use crate::common::machine::has_devices;
use crate::common::process::{Start, diskplugin};
use crate::common::wait::until;

fn node(id: &str, endpoint: &str) -> Start {
    let id = format!("--node-id={id}");
    diskplugin(["node", "--zone=cn-beijing-b", &id, endpoint])
}

#[tokio::test]
async fn a_socket_in_use_is_an_error_and_its_owner_keeps_serving() {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let endpoint = endpoint(&socket);
    let (mut first, channel) = node("i-first", &endpoint).ready(&socket).await;
    let second = node("i-second", &endpoint).ended().await;
    assert_eq!(second.code, Some(1), "{}", second.stderr);
    let text = format!("{} is in use by a running process", socket.display());
    assert!(second.stderr.contains(&text), "{}", second.stderr);
    assert_eq!(info(&channel).await.unwrap().node_id, "i-first");
    let again = first.ready(&socket).await;
    assert_eq!(info(&again).await.unwrap().node_id, "i-first");
}

#[tokio::test]
async fn the_socket_of_a_killed_process_is_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let endpoint = endpoint(&socket);
    let (first, _channel) = node("i-first", &endpoint).ready(&socket).await;
    first.signal(Signal::SIGKILL);
    assert_eq!(first.ended().await.code, None);
    assert!(socket.exists(), "a killed process cannot remove it");
    let (_second, channel) = node("i-second", &endpoint).ready(&socket).await;
    assert_eq!(info(&channel).await.unwrap().node_id, "i-second");
}

/// A process that was killed while a system call on a dead device hangs keeps its socket open, but does not answer. A
/// new pod does not see it in its PID namespace.
#[tokio::test]
async fn an_invisible_process_loses_its_socket_only_if_it_does_not_answer() {
    if !has_devices("roles").await {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let endpoint = endpoint(&socket);
    let second = || {
        let args = ["--pid", "--fork", "--kill-child", "--mount-proc"];
        let program = [env!("CARGO_BIN_EXE_diskplugin"), "node", "--node-id=i-second"];
        let zone = ["--zone=cn-beijing-b", &endpoint];
        Start::of("unshare").args(args).args(program).args(zone)
    };
    let (first, _channel) = node("i-first", &endpoint).ready(&socket).await;
    let refused = second().ended().await;
    assert!(
        refused.stderr.contains("in use by a running process"),
        "{}",
        refused.stderr
    );
    first.signal(Signal::SIGSTOP);
    let mut taken_over = second().spawn();
    until("it takes over the socket", Duration::from_secs(60), async || {
        taken_over.stderr().contains("taking over").then_some(())
    })
    .await;
    let channel = taken_over.ready(&socket).await;
    assert_eq!(info(&channel).await.unwrap().node_id, "i-second");
    first.signal(Signal::SIGKILL);
}
