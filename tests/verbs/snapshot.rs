//! Taking snapshots, and what is told of them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use diskplugin::base::Deadline;
use diskplugin::disk::{Error, FailureKind, NewDisk, NewSnapshot};
use diskplugin::model::{Category, Snapshot, SnapshotId, Tags};

use crate::kit::{Stage, minutes, new_snapshot, one, seconds, text, wanted};

pub(crate) fn snapshots(stage: &Stage) -> Vec<Value> {
    stage.cloud.state()["snapshots"].as_array().unwrap().clone()
}

pub(crate) fn only_snapshot(stage: &Stage) -> SnapshotId {
    let rows = snapshots(stage);
    assert_eq!(rows.len(), 1, "{rows:#?}");
    rows[0]["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_answer_comes_when_the_point_in_time_is_cut_and_not_when_all_is_copied() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let stage = Stage::new(&["--cut-delay=4s", "--snapshot-delay=10m", stale]);
        let disk = stage.disk("pvc-1").await;
        let begun = Instant::now();
        let made = stage
            .disks
            .snapshotter
            .create(minutes(1), &new_snapshot("snap", &disk))
            .await
            .unwrap();
        assert!(
            begun.elapsed() >= Duration::from_secs(4) && begun.elapsed() < Duration::from_secs(7)
        );
        assert!(made.created.is_some());
        assert_eq!(
            (made.source_disk.as_ref(), made.source_size.0),
            (Some(&disk), 20)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_essd_family_is_ready_before_it_is_complete() {
    for (category, ready) in [
        (Category::CloudEssd, true),
        (Category::CloudEfficiency, false),
    ] {
        let stage = Stage::new(&["--snapshot-delay=10m"]);
        let new = NewDisk {
            categories: vec![category],
            ..wanted("pvc-1")
        };
        let disk = stage
            .disks
            .provisioner
            .create(minutes(1), &new)
            .await
            .unwrap()
            .id;
        let snapshot = new_snapshot("snap", &disk);
        let made = stage
            .disks
            .snapshotter
            .create(minutes(1), &snapshot)
            .await
            .unwrap();
        assert_eq!(made.available, ready);
        tokio::time::sleep(Duration::from_secs(600)).await;
        let later = stage
            .disks
            .snapshotter
            .create(minutes(1), &snapshot)
            .await
            .unwrap();
        assert_eq!((later.id, later.available), (made.id, true));
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_name_is_the_same_snapshot_and_another_source_is_refused() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let stage = Stage::patient(&["--cut-delay=1s", stale]);
        let (disk, other) = (stage.disk("pvc-1").await, stage.disk("pvc-2").await);
        let first = stage.snapshot("snap", &disk).await;
        let again = stage
            .restarted()
            .snapshotter
            .create(minutes(1), &new_snapshot("snap", &disk))
            .await;
        assert_eq!(again.unwrap().id, first);
        let refused = stage
            .disks
            .snapshotter
            .create(minutes(1), &new_snapshot("snap", &other))
            .await;
        let refused = refused.unwrap_err();
        assert!(matches!(refused, Error::Exists { .. }), "{refused:?}");
        let both = format!("source volume is {disk}, wanted {other}");
        assert!(
            text(&refused).contains(&both) && text(&refused).contains(first.as_str()),
            "{refused}"
        );
        assert_eq!(only_snapshot(&stage), first);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_unclear_and_the_repeat_ends_with_one_snapshot() {
    for loss in [
        "reset-before",
        "reset-after",
        "truncated",
        "internal-error-after",
    ] {
        for category in [Category::CloudEssd, Category::CloudEfficiency] {
            let stage = Stage::new(&["--cut-delay=2s", "--snapshot-delay=1m", "--stale=2s"]);
            let new = NewDisk {
                categories: vec![category],
                ..wanted("pvc-1")
            };
            let disk = stage
                .disks
                .provisioner
                .create(minutes(1), &new)
                .await
                .unwrap()
                .id;
            stage.fault("CreateSnapshot", &json!(loss));
            let snapshot = new_snapshot("snap", &disk);
            let lost = stage
                .disks
                .snapshotter
                .create(minutes(1), &snapshot)
                .await
                .unwrap_err();
            assert_eq!(lost.failure_kind(), FailureKind::Unavailable);
            let made = stage
                .restarted()
                .snapshotter
                .create(minutes(1), &snapshot)
                .await;
            let made = made.unwrap_or_else(|error| panic!("{loss}: {}", text(&error)));
            assert_eq!(only_snapshot(&stage), made.id);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_being_snapshotted_is_busy_and_a_used_up_token_does_not_make_it_so_for_ever()
{
    for burned in [0, 100] {
        let stage = Stage::new(&["--snapshot-delay=30s"]);
        stage.configure(&json!({"rules": {"token_burn_percent": burned}}));
        let new = NewDisk {
            categories: vec![Category::CloudEfficiency],
            ..wanted("pvc-1")
        };
        let disk = stage
            .disks
            .provisioner
            .create(minutes(1), &new)
            .await
            .unwrap()
            .id;
        stage.snapshot("snap-1", &disk).await;
        let second = new_snapshot("snap-2", &disk);
        let busy = stage
            .disks
            .snapshotter
            .create(seconds(10), &second)
            .await
            .unwrap_err();
        assert_eq!(busy.failure_kind(), FailureKind::Aborted, "{}", text(&busy));
        tokio::time::sleep(Duration::from_secs(30)).await;
        let made = stage.disks.snapshotter.create(minutes(1), &second).await;
        let made = made.unwrap_or_else(|error| panic!("{burned} %: {}", text(&error)));
        let again = stage
            .restarted()
            .snapshotter
            .create(minutes(1), &second)
            .await
            .unwrap();
        assert_eq!(
            (again.id, snapshots(&stage).len()),
            (made.id, 2),
            "{burned} %"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_whose_snapshot_was_deleted_gets_a_new_one() {
    let stage = Stage::new(&[]);
    let disk = stage.disk("pvc-1").await;
    for _ in 0..3 {
        let made = stage.snapshot("snap", &disk).await;
        assert_eq!(only_snapshot(&stage), made);
        stage
            .disks
            .snapshotter
            .delete(minutes(1), &made)
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_snapshot_is_taken_anew_also_by_calls_too_short_to_believe_it_gone() {
    let stage = Stage::new(&[]);
    let disk = stage.disk("pvc-1").await;
    let first = stage.snapshot("snap", &disk).await;
    let deleted = stage.disks.snapshotter.delete(minutes(1), &first).await;
    deleted.unwrap();
    let mut tries = 0;
    let made = loop {
        let soon = Deadline::after(Duration::from_millis(9750));
        let new = new_snapshot("snap", &disk);
        if let Ok(made) = stage.disks.snapshotter.create(soon, &new).await {
            break made.id;
        }
        tries += 1;
        assert!(tries < 3);
    };
    assert_eq!(only_snapshot(&stage), made);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_fails_before_its_cut_is_told_goes_and_is_taken_anew() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let stage = Stage::new(&["--cut-delay=2s", stale]);
        let disk = stage.disk("pvc-1").await;
        stage.fault("CreateSnapshot", &json!("fails-later"));
        let new = new_snapshot("snap", &disk);
        let failed = stage.disks.snapshotter.create(minutes(1), &new).await;
        let failed = failed.unwrap_err();
        assert_eq!(
            failed.failure_kind(),
            FailureKind::Internal,
            "{}",
            text(&failed)
        );
        assert!(text(&failed).contains("it is deleted"), "{}", text(&failed));
        assert!(snapshots(&stage).is_empty());
        let made = stage.disks.snapshotter.create(minutes(1), &new).await;
        let made = made.unwrap_or_else(|error| panic!("{stale}: {}", text(&error)));
        assert_eq!(only_snapshot(&stage), made.id);
        let again = stage.restarted().snapshotter.create(minutes(1), &new).await;
        assert_eq!(again.unwrap().id, made.id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_beyond_the_deadline_is_told_and_the_repeat_finds_it() {
    let stage = Stage::new(&["--cut-delay=30s"]);
    let disk = stage.disk("pvc-1").await;
    let snapshot = new_snapshot("snap", &disk);
    let late = stage
        .disks
        .snapshotter
        .create(seconds(10), &snapshot)
        .await
        .unwrap_err();
    assert_eq!(late.failure_kind(), FailureKind::DeadlineExceeded);
    let id = only_snapshot(&stage);
    assert!(
        text(&late).contains(&format!("last seen: snapshot {id} is progressing")),
        "{}",
        text(&late)
    );
    let made = stage
        .restarted()
        .snapshotter
        .create(minutes(1), &snapshot)
        .await
        .unwrap();
    assert_eq!((made.id, snapshots(&stage).len()), (id, 1));
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_of_an_unknown_disk_is_not_found() {
    let stage = Stage::new(&[]);
    let snapshot = new_snapshot("snap", &"d-none".parse().unwrap());
    let refused = stage
        .disks
        .snapshotter
        .create(minutes(1), &snapshot)
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::NoSuchDisk { .. }), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn many_looks_at_snapshots_by_id_cost_one_description_for_a_hundred() {
    let stage = Stage::new(&[]);
    let mut ids = Vec::new();
    for n in 0..150 {
        let disk = stage.disk(&format!("pvc-{n}")).await;
        ids.push(stage.snapshot(&format!("snap-{n}"), &disk).await);
    }
    stage.cloud.clear_calls();
    let mut looks = JoinSet::new();
    for (n, id) in ids.into_iter().enumerate() {
        let disks = Arc::clone(&stage.disks);
        looks.spawn(async move {
            if n % 2 == 0 {
                return disks.snapshotter.get(minutes(1), &id).await.unwrap().id == id;
            }
            let listed =
                disks
                    .inventory
                    .list_snapshots(minutes(1), Some(&id), None, Snapshot::clone);
            listed.await.unwrap()[0].id == id
        });
    }
    assert!(looks.join_all().await.into_iter().all(|found| found));
    assert_eq!(stage.calls("DescribeSnapshots"), 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_class_wants_of_a_snapshot_is_ordered_and_a_retained_one_ends() {
    let stage = Stage::new(&[]);
    let disk = stage.disk("pvc-1").await;
    let new = NewSnapshot {
        retention_days: Some(2),
        resource_group: Some("rg-1".to_owned()),
        tags: Tags::from([("team".to_owned(), "blue".to_owned())]),
        ..new_snapshot("snap", &disk)
    };
    let made = stage
        .disks
        .snapshotter
        .create(minutes(1), &new)
        .await
        .unwrap();
    let row = &snapshots(&stage)[0];
    assert_eq!(
        (&row["retention_days"], &row["resource_group"]),
        (&json!(2), &json!("rg-1"))
    );
    assert_eq!(
        (row["tags"]["team"].as_str(), made.tags.len()),
        (Some("blue"), 3)
    );
    tokio::time::sleep(Duration::from_secs(2 * 24 * 3600)).await;
    let gone = stage
        .disks
        .snapshotter
        .get(minutes(1), &made.id)
        .await
        .unwrap_err();
    assert!(matches!(gone, Error::NoSuchSnapshot { .. }), "{gone:?}");
    stage
        .disks
        .snapshotter
        .delete(minutes(1), &made.id)
        .await
        .unwrap();
    // The name is free again.
    let again = stage
        .disks
        .snapshotter
        .create(minutes(1), &new)
        .await
        .unwrap();
    assert_ne!(again.id, made.id);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_was_never_attached_says_so_and_what_to_do() {
    let stage = Stage::new(&["--never-attached"]);
    let disk = stage.disk("pvc-1").await;
    let new = new_snapshot("snap", &disk);
    let refused = stage.disks.snapshotter.create(minutes(1), &new).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.failure_kind(), FailureKind::FailedPrecondition);
    let words = text(&refused);
    for part in [
        "never attached",
        disk.as_str(),
        "start a pod",
        "NeverAttached",
    ] {
        assert!(words.contains(part), "{words}");
    }
    // Once it was attached, the same call succeeds, although its token may be used up.
    for burned in [0, 100] {
        stage.configure(&json!({"rules": {"token_burn_percent": burned}}));
        let disk = stage.disk(&format!("pvc-{burned}")).await;
        let new = new_snapshot(&format!("snap-{burned}"), &disk);
        stage
            .disks
            .snapshotter
            .create(minutes(1), &new)
            .await
            .unwrap_err();
        stage
            .disks
            .attacher
            .attach(minutes(1), &disk, &one())
            .await
            .unwrap();
        stage
            .disks
            .snapshotter
            .create(minutes(1), &new)
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_is_not_cut_yet_is_in_no_list_and_is_told_by_its_id() {
    let stage = Stage::new(&["--cut-delay=30s"]);
    let disk = stage.disk("pvc-1").await;
    let new = new_snapshot("snap", &disk);
    stage
        .disks
        .snapshotter
        .create(seconds(5), &new)
        .await
        .unwrap_err();
    let id = only_snapshot(&stage);
    let listed = stage
        .disks
        .inventory
        .list_snapshots(minutes(1), None, None, Snapshot::clone);
    assert!(listed.await.unwrap().is_empty());
    let early = stage
        .disks
        .snapshotter
        .get(minutes(1), &id)
        .await
        .unwrap_err();
    assert_eq!(
        early.failure_kind(),
        FailureKind::Aborted,
        "{}",
        text(&early)
    );
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(
        stage
            .disks
            .snapshotter
            .get(minutes(1), &id)
            .await
            .unwrap()
            .id,
        id
    );
}
