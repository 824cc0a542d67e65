//! Attachments and detachments across processes, lost orders and conflicts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use diskplugin::base::Deadline;
use diskplugin::cloud::{AttachDisk, Ecs};

use super::{code, pass};
use crate::kit::{Stage, minutes, one, seconds, text, two};

#[tokio::test(start_paused = true)]
async fn after_a_restart_a_stale_row_is_no_attachment() {
    let stage = Stage::new(&["--attach-delay=1s", "--detach-delay=500ms"]);
    let disk = stage.disk("pvc-1").await;
    stage
        .disks
        .attacher
        .attach(minutes(1), &disk, &one())
        .await
        .unwrap();
    pass(60).await;
    stage
        .disks
        .attacher
        .detach(minutes(1), &disk, &one())
        .await
        .unwrap();
    stage.configure(&json!({"stale": {"lag": "2s"}}));
    // Published to the same node again, by another process; the node is busy with somebody else's operation.
    let restarted = stage.restarted();
    stage.faults("AttachDisk", 1, &code(403, "InvalidOperation.Conflict"));
    let row = restarted.attacher.attach(seconds(60), &disk, &one()).await;
    assert!(
        row.is_err() || stage.holders(&disk).iter().any(|(node, _)| node == "i-one"),
        "OK, and the disk is attached to {:?}",
        stage.holders(&disk)
    );
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_takes_over_reports_no_detachment_from_a_row_of_before_the_attachment() {
    let stage = Stage::new(&[
        "--attach-delay=500ms",
        "--detach-delay=20s",
        "--stale=2500ms",
    ]);
    let disk = stage.disk("pvc-1").await;
    pass(10).await;
    let standby = stage.restarted();
    pass(3600).await;
    let node = one();
    let attach = stage.disks.attacher.attach(seconds(60), &disk, &node);
    // The old leader dies in the middle.
    assert!(
        tokio::time::timeout(Duration::from_millis(700), attach)
            .await
            .is_err()
    );
    standby
        .attacher
        .detach(seconds(60), &disk, &one())
        .await
        .unwrap();
    assert_eq!(stage.holders(&disk), [], "OK, and the disk is still held");
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_no_detachment_is_reported_from_a_row_of_before_the_attachment() {
    let stage = Stage::new(&[
        "--attach-delay=500ms",
        "--detach-delay=20s",
        "--stale=2500ms",
    ]);
    let disk = stage.disk("pvc-1").await;
    pass(10).await;
    let node = one();
    let attach = stage.disks.attacher.attach(seconds(60), &disk, &node);
    assert!(
        tokio::time::timeout(Duration::from_millis(700), attach)
            .await
            .is_err()
    );
    let restarted = stage.restarted();
    restarted
        .attacher
        .detach(seconds(60), &disk, &one())
        .await
        .unwrap();
    assert_eq!(stage.holders(&disk), [], "OK, and the disk is still held");
}

/// An order whose request is slow on its way: it takes effect late, though its caller has given up.
#[tokio::test(start_paused = true)]
async fn an_attachment_that_takes_effect_late_is_not_left_behind_by_unpublish() {
    let stage = Stage::new(&["--attach-delay=500ms", "--detach-delay=500ms"]);
    let disk = stage.disk("pvc-1").await;
    pass(10).await;
    stage.fault("AttachDisk", &json!({"delay-before": "3s"}));
    let request = AttachDisk {
        disk: disk.clone(),
        instance: one(),
        force: false,
        delete_with_instance: false,
    };
    // What the cloud does with the request of the call below, which hangs up.
    let (ecs, late) = (stage.cloud.ecs(), request.clone());
    let mut effect = JoinSet::new();
    effect.spawn(async move { ecs.attach_disk(minutes(1), &late).await });
    tokio::task::yield_now().await;
    stage.configure(&json!({"faults": []}));
    stage.fault("AttachDisk", &json!("reset-before"));
    let lost = stage
        .disks
        .attacher
        .attach(Deadline::after(Duration::from_millis(400)), &disk, &one())
        .await;
    lost.unwrap_err();
    stage
        .disks
        .attacher
        .detach(seconds(60), &disk, &one())
        .await
        .unwrap();
    effect.join_next().await.unwrap().unwrap().unwrap();
    pass(5).await;
    let elsewhere = stage
        .disks
        .attacher
        .attach(seconds(60), &disk, &two())
        .await;
    assert!(elsewhere.is_ok(), "{}", text(&elsewhere.unwrap_err()));
}

#[tokio::test(start_paused = true)]
async fn one_refused_order_leaves_a_parallel_node_parallel() {
    let stage = Stage::crowd(1, &["--attach-delay=2s"]);
    let node = "i-0".parse().unwrap();
    assert!(
        stage
            .cloud
            .tag_instance(&node, "supportConcurrencyAttach", "true")
    );
    let mut disks = Vec::new();
    for n in 0..15 {
        disks.push(stage.disk(&format!("pvc-{n}")).await);
    }
    // Somebody else's operation keeps the instance busy for a moment.
    let busy = json!({"action": "AttachDisk", "from": 10, "times": 1, "kind": code(403, "InvalidOperation.Conflict")});
    stage.configure(&json!({"faults": [busy]}));
    let last = disks.split_off(10);
    let later = disks.split_off(5);
    let mut took = Vec::new();
    for disks in [disks, later, last] {
        let start = Instant::now();
        let mut calls = JoinSet::new();
        for disk in disks {
            let (services, node) = (Arc::clone(&stage.disks), node.clone());
            calls.spawn(async move {
                services
                    .attacher
                    .attach(minutes(9), &disk, &node)
                    .await
                    .map(|_| ())
            });
        }
        assert!(calls.join_all().await.iter().all(Result::is_ok));
        took.push(start.elapsed());
        pass(60).await;
    }
    assert!(
        took[2] <= Duration::from_secs(4),
        "5 disks, 32 at a time of 2 s: {took:?}"
    );
}
