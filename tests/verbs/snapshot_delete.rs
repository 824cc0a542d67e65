//! Deleting snapshots: repeatable, and never somebody else's.

use serde_json::json;

use diskplugin::cloud::{CreateSnapshot, Ecs};
use diskplugin::disk::{FailureKind, NewDisk};
use diskplugin::model::{ClientToken, Failure, Tags};

use crate::kit::{Stage, minutes, new_snapshot, seconds, text, wanted};
use crate::snapshot::{only_snapshot, snapshots};

#[tokio::test(start_paused = true)]
async fn deleting_twice_and_what_is_not_there_is_success_and_disks_made_from_it_stay() {
    for flags in [
        &[][..],
        &["--missing-is-error"],
        &["--stale=2s", "--missing-is-error"],
    ] {
        let stage = Stage::new(flags);
        let disk = stage.disk("pvc-1").await;
        let snapshot = stage.snapshot("snap", &disk).await;
        let new = NewDisk {
            snapshot: Some(snapshot.clone()),
            ..wanted("pvc-2")
        };
        stage
            .disks
            .provisioner
            .create(minutes(1), &new)
            .await
            .unwrap();
        for _ in 0..2 {
            stage
                .disks
                .snapshotter
                .delete(minutes(1), &snapshot)
                .await
                .unwrap();
        }
        stage
            .disks
            .snapshotter
            .delete(minutes(1), &"s-none".parse().unwrap())
            .await
            .unwrap();
        assert_eq!((snapshots(&stage).len(), stage.rows().len()), (0, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_snapshot_that_reads_do_not_show_yet_is_deleted_all_the_same() {
    let stage = Stage::new(&["--stale=2s"]);
    let disk = stage.disk("pvc-1").await;
    stage
        .disks
        .snapshotter
        .create(seconds(1), &new_snapshot("snap", &disk))
        .await
        .unwrap_err();
    let id = only_snapshot(&stage);
    stage
        .disks
        .snapshotter
        .delete(minutes(1), &id)
        .await
        .unwrap();
    assert!(snapshots(&stage).is_empty());
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_snapshot_is_refused_and_is_still_there() {
    let stage = Stage::new(&[]);
    let disk = stage.disk("pvc-1").await;
    let request = CreateSnapshot {
        disk,
        name: "by-hand".to_owned(),
        retention_days: None,
        resource_group: None,
        tags: Tags::new(),
        token: ClientToken::derive("test", ["by-hand"]),
    };
    let snapshot = stage
        .cloud
        .ecs()
        .create_snapshot(minutes(1), &request)
        .await
        .unwrap();
    let refused = stage
        .disks
        .snapshotter
        .delete(minutes(1), &snapshot)
        .await
        .unwrap_err();
    assert!(refused.failure() == Failure::NotOwned, "{refused:?}");
    assert_eq!(only_snapshot(&stage), snapshot);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_somebody_keeps_says_who_and_what_to_do() {
    for (hold, code, advice) in [
        ("locked", "SnapshotIsLocked", "unlock it"),
        (
            "images",
            "SnapshotCreatedImage",
            "delete those disks or images",
        ),
    ] {
        let stage = Stage::new(&[]);
        let disk = stage.disk("pvc-1").await;
        let id = stage.snapshot("snap", &disk).await;
        stage.configure(&json!({"holds": {hold: [id.as_str()]}}));
        let kept = stage
            .disks
            .snapshotter
            .delete(minutes(1), &id)
            .await
            .unwrap_err();
        assert_eq!(kept.failure_kind(), FailureKind::FailedPrecondition);
        let words = text(&kept);
        assert!(words.contains(code) && words.contains(advice), "{words}");
        assert_eq!(only_snapshot(&stage), id);
        stage.configure(&json!({"holds": {hold: []}}));
        stage
            .disks
            .snapshotter
            .delete(minutes(1), &id)
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_deleted_while_it_is_taken_and_after_its_disk() {
    let stage = Stage::new(&["--snapshot-delay=10m"]);
    let disk = stage.disk("pvc-1").await;
    let id = stage.snapshot("snap", &disk).await;
    stage
        .disks
        .snapshotter
        .delete(minutes(1), &id)
        .await
        .unwrap();
    let id = stage.snapshot("other", &disk).await;
    stage
        .disks
        .provisioner
        .delete(minutes(1), &disk)
        .await
        .unwrap();
    let row = stage.disks.snapshotter.get(minutes(1), &id).await.unwrap();
    assert_eq!((row.source_disk, row.available), (Some(disk), true));
    stage
        .disks
        .snapshotter
        .delete(minutes(1), &id)
        .await
        .unwrap();
    assert!(snapshots(&stage).is_empty());
}
