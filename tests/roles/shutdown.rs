//! SIGTERM: running calls finish, new calls are rejected, the socket is removed.

use nix::sys::signal::Signal;
use tokio::time::Instant;
use tonic::Code;

use crate::common::csi::{create, info, list, try_connect};
use crate::common::fake::Fake;
use crate::common::process::Start;
use crate::common::wait::until;
use crate::running::{Running, SOON, wait};
use crate::text::{assert_failed, assert_has};

/// Waits until the cloud creates the disk, and sends SIGTERM.
pub(crate) async fn terminate_during_create(fake: &Fake, controller: &Running) {
    wait("the cloud creates the disk", async || {
        fake.count("CreateDisk").await == 1
    })
    .await;
    controller.process.signal(Signal::SIGTERM);
}

#[tokio::test]
async fn a_running_call_finishes_and_new_calls_are_rejected() {
    let fake = Fake::start(&["--create-delay=2s"]).await;
    let controller = Running::controller(&fake, &[]).await;
    let meanwhile = async {
        terminate_during_create(&fake, &controller).await;
        let channel = &controller.channel;
        let refused = until("new calls are rejected", SOON, async || list(channel).await.err()).await;
        let other = try_connect(&controller.socket).await;
        let other = other.expect("the socket is served while draining");
        [refused, list(&other).await.unwrap_err()]
    };
    let (created, refusals) = tokio::join!(create(&controller.channel, "pvc-1"), meanwhile);
    for refusal in refusals {
        assert_eq!(refusal.code(), Code::Unavailable);
        assert_has(refusal.message(), &["shutting down"]);
    }
    let ended = controller.process.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!controller.socket.exists());
    let disks = fake.disks().await;
    let ids: Vec<_> = disks.iter().map(|disk| disk["id"].clone()).collect();
    assert_eq!(ids, [created.unwrap()]);
}

#[tokio::test]
async fn idle_clients_do_not_delay_shutdown() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let node = Running::node(&[]).await;
        info(&node.channel).await.unwrap();
        let start = Instant::now();
        node.process.signal(signal);
        assert_eq!(node.process.ended().await.code, Some(0));
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        assert!(!node.socket.exists());
    }
}

#[tokio::test]
async fn a_call_is_aborted_after_the_drain_timeout() {
    let fake = Fake::start(&["--create-delay=10m"]).await;
    let controller = Running::controller(&fake, &["--drain-timeout=500ms"]).await;
    let meanwhile = async {
        terminate_during_create(&fake, &controller).await;
        Instant::now()
    };
    let (created, start) = tokio::join!(create(&controller.channel, "pvc-1"), meanwhile);
    created.unwrap_err();
    let ended = controller.process.ended().await;
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    assert_failed(&ended, 1, &["calls were still running 500ms"]);
    assert!(!controller.socket.exists());
}

#[tokio::test]
async fn a_fake_cloud_that_cannot_print_its_endpoints_exits() {
    let line = "\"$0\" mock-cloud --listen 127.0.0.1:0 > /dev/full";
    let shell = Start::of("sh").args(["-c", line, env!("CARGO_BIN_EXE_diskplugin")]);
    assert_failed(&shell.ended().await, 1, &["cannot print"]);
}
