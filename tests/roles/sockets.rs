//! Ownership of the CSI socket.

use std::path::Path;

use nix::sys::signal::Signal;

use crate::common::csi::{endpoint, info};
use crate::common::machine::has_devices;
use crate::common::process::{Start, diskplugin};
use crate::running::{Running, logged};
use crate::text::assert_failed;

fn node(id: &str, socket: &Path) -> Start {
    let id = format!("--node-id={id}");
    diskplugin(["node", "--zone=cn-beijing-b", &id, &endpoint(socket)])
}

#[tokio::test]
async fn a_socket_in_use_is_an_error_and_its_owner_keeps_serving() {
    let mut first = Running::of(|socket| node("i-first", socket)).await;
    let second = node("i-second", &first.socket).ended().await;
    let text = format!("{} is in use by a running process", first.socket.display());
    assert_failed(&second, 1, &[&text]);
    let again = first.process.ready(&first.socket).await;
    for channel in [&first.channel, &again] {
        assert_eq!(info(channel).await.unwrap().node_id, "i-first");
    }
}

/// A process that was killed while a system call on a dead device hangs keeps its socket open, but does not respond. A
/// new pod does not see it in its PID namespace.
#[tokio::test]
async fn an_invisible_process_loses_its_socket_only_if_it_does_not_respond() {
    if !has_devices("roles").await {
        return;
    }
    let first = Running::of(|socket| node("i-first", socket)).await;
    let second = || {
        let args = ["--pid", "--fork", "--kill-child", "--mount-proc"];
        let program = [env!("CARGO_BIN_EXE_diskplugin"), "node", "--node-id=i-second"];
        let start = Start::of("unshare").args(args).args(program);
        start.args(["--zone=cn-beijing-b", &endpoint(&first.socket)])
    };
    assert_failed(&second().ended().await, 1, &["in use by a running process"]);
    first.process.signal(Signal::SIGSTOP);
    let mut taken_over = second().spawn();
    logged(&taken_over, "taking over").await;
    let channel = taken_over.ready(&first.socket).await;
    assert_eq!(info(&channel).await.unwrap().node_id, "i-second");
    first.process.signal(Signal::SIGKILL);
}
