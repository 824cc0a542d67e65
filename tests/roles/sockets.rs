//! Ownership of the CSI socket.

use nix::sys::signal::Signal;

use crate::common::csi::{endpoint, info, socket};
use crate::common::process::{Start, diskplugin};

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
