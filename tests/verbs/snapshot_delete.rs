//! Deleting snapshots: repeatable, and never somebody else's.

use serde_json::json;

use diskplugin::cloud::{CreateSnapshot, EcsApi};
use diskplugin::disk::{FailureKind, NewDisk};
use diskplugin::model::{ClientToken, Failure, Tags};

use crate::kit::{Setup, minutes, new_disk, new_snapshot, seconds, text};
use crate::snapshot::{only_snapshot, snapshots};

#[tokio::test(start_paused = true)]
async fn deleting_twice_and_what_is_not_there_is_success_and_disks_made_from_it_stay() {
    for flags in [
        &[][..],
        &["--missing-is-error"],
        &["--stale=2s", "--missing-is-error"],
    ] {
        let setup = Setup::new(flags);
        let disk = setup.disk("pvc-1").await;
        let snapshot = setup.snapshot("snap", &disk).await;
        let new = NewDisk {
            snapshot: Some(snapshot.clone()),
            ..new_disk("pvc-2")
        };
        setup.create(&new).await;
        for _ in 0..2 {
            setup
                .disks
                .snapshotter
                .delete(minutes(1), &snapshot)
                .await
                .unwrap();
        }
        setup
            .disks
            .snapshotter
            .delete(minutes(1), &"s-none".parse().unwrap())
            .await
            .unwrap();
        assert_eq!((snapshots(&setup).len(), setup.rows().len()), (0, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_snapshot_that_reads_do_not_show_yet_is_deleted_all_the_same() {
    let setup = Setup::new(&["--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    setup
        .disks
        .snapshotter
        .create(seconds(1), &new_snapshot("snap", &disk))
        .await
        .unwrap_err();
    let id = only_snapshot(&setup);
    setup
        .disks
        .snapshotter
        .delete(minutes(1), &id)
        .await
        .unwrap();
    assert!(snapshots(&setup).is_empty());
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_snapshot_is_refused_and_is_still_there() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let request = CreateSnapshot {
        disk,
        name: "by-hand".to_owned(),
        retention_days: None,
        resource_group: None,
        tags: Tags::new(),
        token: ClientToken::derive("test", ["by-hand"]),
    };
    let snapshot = setup
        .cloud
        .ecs()
        .create_snapshot(minutes(1), &request)
        .await
        .unwrap();
    let rejected = setup
        .disks
        .snapshotter
        .delete(minutes(1), &snapshot)
        .await
        .unwrap_err();
    assert!(rejected.failure() == Failure::NotOwned, "{rejected:?}");
    assert_eq!(only_snapshot(&setup), snapshot);
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
        let setup = Setup::new(&[]);
        let disk = setup.disk("pvc-1").await;
        let id = setup.snapshot("snap", &disk).await;
        setup.configure(&json!({"holds": {hold: [id.as_str()]}}));
        let kept = setup
            .disks
            .snapshotter
            .delete(minutes(1), &id)
            .await
            .unwrap_err();
        assert_eq!(kept.failure_kind(), FailureKind::FailedPrecondition);
        let words = text(&kept);
        assert!(words.contains(code) && words.contains(advice), "{words}");
        assert_eq!(only_snapshot(&setup), id);
        setup.configure(&json!({"holds": {hold: []}}));
        setup
            .disks
            .snapshotter
            .delete(minutes(1), &id)
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_deleted_while_it_is_taken_and_after_its_disk() {
    let setup = Setup::new(&["--snapshot-delay=10m"]);
    let disk = setup.disk("pvc-1").await;
    let id = setup.snapshot("snap", &disk).await;
    setup
        .disks
        .snapshotter
        .delete(minutes(1), &id)
        .await
        .unwrap();
    let id = setup.snapshot("other", &disk).await;
    setup.delete(&disk).await;
    let row = setup.disks.snapshotter.get(minutes(1), &id).await.unwrap();
    assert_eq!((row.source_disk, row.available), (Some(disk), true));
    setup
        .disks
        .snapshotter
        .delete(minutes(1), &id)
        .await
        .unwrap();
    assert!(snapshots(&setup).is_empty());
}
