//! SIGTERM: running calls finish, new calls are rejected, the socket is removed.

use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::Instant;
use tonic::Code;

use crate::common::csi::{create, info, list, socket, try_connect};
use crate::common::fake::Fake;
use crate::common::process::{Start, diskplugin};
use crate::common::wait::until;

const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_running_call_finishes_and_new_calls_are_rejected() {
    let fake = Fake::start(&["--create-delay=2s"]).await;
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let (controller, channel) = fake.controller(&socket).keys().ready(&socket).await;
    let meanwhile = async {
        until("the cloud creates the disk", SOON, async || {
            (fake.count("CreateDisk").await == 1).then_some(())
        })
        .await;
        controller.signal(Signal::SIGTERM);
        let refused = until("new calls are rejected", SOON, async || list(&channel).await.err());
        let refused = refused.await;
        let other = try_connect(&socket).await.expect("the socket is served while draining");
        let from_other = list(&other).await.unwrap_err();
        [refused, from_other]
    };
    let (created, refusals) = tokio::join!(create(&channel, "pvc-1"), meanwhile);
    let volume = created.unwrap();
    for refusal in refusals {
        assert_eq!(refusal.code(), Code::Unavailable);
        assert!(refusal.message().contains("shutting down"), "{refusal:?}");
    }
    let ended = controller.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!socket.exists());
    let disks = fake.disks().await;
    let ids: Vec<_> = disks.iter().map(|disk| disk["id"].clone()).collect();
    assert_eq!(ids, [volume]);
}

#[tokio::test]
async fn idle_clients_do_not_delay_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let endpoint = crate::common::csi::endpoint(&socket);
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let start = diskplugin(["node", "--zone=cn-beijing-b", "--node-id=i-1", &endpoint]);
        let (node, channel) = start.ready(&socket).await;
        info(&channel).await.unwrap();
        let start = Instant::now();
        node.signal(signal);
        assert_eq!(node.ended().await.code, Some(0));
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        assert!(!socket.exists());
    }
}

#[tokio::test]
async fn a_call_is_aborted_after_the_drain_timeout() {
    let fake = Fake::start(&["--create-delay=10m"]).await;
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let start = fake.controller(&socket).keys().args(["--drain-timeout=500ms"]);
    let (controller, channel) = start.ready(&socket).await;
    let meanwhile = async {
        until("the cloud creates the disk", SOON, async || {
            (fake.count("CreateDisk").await == 1).then_some(())
        })
        .await;
        let start = Instant::now();
        controller.signal(Signal::SIGTERM);
        let ended = controller.ended().await;
        (ended, start.elapsed())
    };
    let (created, (ended, took)) = tokio::join!(create(&channel, "pvc-1"), meanwhile);
    assert!(created.is_err());
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("calls were still running 500ms"),
        "{}",
        ended.stderr
    );
    assert!(!socket.exists());
}

#[tokio::test]
async fn a_fake_cloud_that_cannot_print_its_endpoints_exits() {
    let line = "\"$0\" mock-cloud --listen 127.0.0.1:0 > /dev/full";
    let shell = Start::of("sh").args(["-c", line, env!("CARGO_BIN_EXE_diskplugin")]);
    let ended = shell.ended().await;
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot print"), "{}", ended.stderr);
}
