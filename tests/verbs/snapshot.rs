//! Taking snapshots, and what is told of them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use diskplugin::base::Deadline;
use diskplugin::disk::{Error, FailureKind, NewDisk, NewSnapshot};
use diskplugin::model::{Category, Snapshot, SnapshotId, Tags};

use crate::kit::{Setup, minutes, new_disk, new_snapshot, node_one, seconds, text};

pub(crate) fn snapshots(setup: &Setup) -> Vec<Value> {
    setup.cloud.state()["snapshots"].as_array().unwrap().clone()
}

pub(crate) fn only_snapshot(setup: &Setup) -> SnapshotId {
    let rows = snapshots(setup);
    assert_eq!(rows.len(), 1, "{rows:#?}");
    rows[0]["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_answer_comes_when_the_point_in_time_is_cut_and_not_when_all_is_copied() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&["--cut-delay=4s", "--snapshot-delay=10m", stale]);
        let disk = setup.disk("pvc-1").await;
        let begun = Instant::now();
        let made = setup
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
        let setup = Setup::new(&["--snapshot-delay=10m"]);
        let new = NewDisk {
            categories: vec![category],
            ..new_disk("pvc-1")
        };
        let disk = setup.create(&new).await.id;
        let snapshot = new_snapshot("snap", &disk);
        let made = setup
            .disks
            .snapshotter
            .create(minutes(1), &snapshot)
            .await
            .unwrap();
        assert_eq!(made.available, ready);
        tokio::time::sleep(Duration::from_secs(600)).await;
        let later = setup
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
        let setup = Setup::with_retries(&["--cut-delay=1s", stale]);
        let (disk, other) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
        let first = setup.snapshot("snap", &disk).await;
        let again = setup
            .restarted()
            .snapshotter
            .create(minutes(1), &new_snapshot("snap", &disk))
            .await;
        assert_eq!(again.unwrap().id, first);
        let rejected = setup
            .disks
            .snapshotter
            .create(minutes(1), &new_snapshot("snap", &other))
            .await;
        let rejected = rejected.unwrap_err();
        assert!(
            matches!(rejected, Error::AlreadyExists { .. }),
            "{rejected:?}"
        );
        let both = format!("source volume is {disk}, wanted {other}");
        assert!(
            text(&rejected).contains(&both) && text(&rejected).contains(first.as_str()),
            "{rejected}"
        );
        assert_eq!(only_snapshot(&setup), first);
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
            let setup = Setup::new(&["--cut-delay=2s", "--snapshot-delay=1m", "--stale=2s"]);
            let new = NewDisk {
                categories: vec![category],
                ..new_disk("pvc-1")
            };
            let disk = setup.create(&new).await.id;
            setup.fault("CreateSnapshot", &json!(loss));
            let snapshot = new_snapshot("snap", &disk);
            let lost = setup
                .disks
                .snapshotter
                .create(minutes(1), &snapshot)
                .await
                .unwrap_err();
            assert_eq!(lost.failure_kind(), FailureKind::Unavailable);
            let made = setup
                .restarted()
                .snapshotter
                .create(minutes(1), &snapshot)
                .await;
            let made = made.unwrap_or_else(|error| panic!("{loss}: {}", text(&error)));
            assert_eq!(only_snapshot(&setup), made.id);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_being_snapshotted_is_busy_and_a_used_up_token_does_not_make_it_so_for_ever()
{
    for burned in [0, 100] {
        let setup = Setup::new(&["--snapshot-delay=30s"]);
        setup.configure(&json!({"rules": {"token_burn_percent": burned}}));
        let new = NewDisk {
            categories: vec![Category::CloudEfficiency],
            ..new_disk("pvc-1")
        };
        let disk = setup.create(&new).await.id;
        setup.snapshot("snap-1", &disk).await;
        let second = new_snapshot("snap-2", &disk);
        let busy = setup
            .disks
            .snapshotter
            .create(seconds(10), &second)
            .await
            .unwrap_err();
        assert_eq!(busy.failure_kind(), FailureKind::Aborted, "{}", text(&busy));
        tokio::time::sleep(Duration::from_secs(30)).await;
        let made = setup.disks.snapshotter.create(minutes(1), &second).await;
        let made = made.unwrap_or_else(|error| panic!("{burned} %: {}", text(&error)));
        let again = setup
            .restarted()
            .snapshotter
            .create(minutes(1), &second)
            .await
            .unwrap();
        assert_eq!(
            (again.id, snapshots(&setup).len()),
            (made.id, 2),
            "{burned} %"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_whose_snapshot_was_deleted_gets_a_new_one() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    for _ in 0..3 {
        let made = setup.snapshot("snap", &disk).await;
        assert_eq!(only_snapshot(&setup), made);
        setup
            .disks
            .snapshotter
            .delete(minutes(1), &made)
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_snapshot_is_taken_anew_also_by_calls_too_short_to_believe_it_gone() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let first = setup.snapshot("snap", &disk).await;
    let deleted = setup.disks.snapshotter.delete(minutes(1), &first).await;
    deleted.unwrap();
    let mut tries = 0;
    let made = loop {
        let soon = Deadline::after(Duration::from_millis(9750));
        let new = new_snapshot("snap", &disk);
        if let Ok(made) = setup.disks.snapshotter.create(soon, &new).await {
            break made.id;
        }
        tries += 1;
        assert!(tries < 3);
    };
    assert_eq!(only_snapshot(&setup), made);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_fails_before_its_cut_is_told_goes_and_is_taken_anew() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&["--cut-delay=2s", stale]);
        let disk = setup.disk("pvc-1").await;
        setup.fault("CreateSnapshot", &json!("fails-later"));
        let new = new_snapshot("snap", &disk);
        let failed = setup.disks.snapshotter.create(minutes(1), &new).await;
        let failed = failed.unwrap_err();
        assert_eq!(
            failed.failure_kind(),
            FailureKind::Internal,
            "{}",
            text(&failed)
        );
        assert!(text(&failed).contains("it is deleted"), "{}", text(&failed));
        assert!(snapshots(&setup).is_empty());
        let made = setup.disks.snapshotter.create(minutes(1), &new).await;
        let made = made.unwrap_or_else(|error| panic!("{stale}: {}", text(&error)));
        assert_eq!(only_snapshot(&setup), made.id);
        let again = setup.restarted().snapshotter.create(minutes(1), &new).await;
        assert_eq!(again.unwrap().id, made.id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_beyond_the_deadline_is_told_and_the_repeat_finds_it() {
    let setup = Setup::new(&["--cut-delay=30s"]);
    let disk = setup.disk("pvc-1").await;
    let snapshot = new_snapshot("snap", &disk);
    let late = setup
        .disks
        .snapshotter
        .create(seconds(10), &snapshot)
        .await
        .unwrap_err();
    assert_eq!(late.failure_kind(), FailureKind::DeadlineExceeded);
    let id = only_snapshot(&setup);
    assert!(
        text(&late).contains(&format!("last observed: snapshot {id} is progressing")),
        "{}",
        text(&late)
    );
    let made = setup
        .restarted()
        .snapshotter
        .create(minutes(1), &snapshot)
        .await
        .unwrap();
    assert_eq!((made.id, snapshots(&setup).len()), (id, 1));
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_of_an_unknown_disk_is_not_found() {
    let setup = Setup::new(&[]);
    let snapshot = new_snapshot("snap", &"d-none".parse().unwrap());
    let rejected = setup
        .disks
        .snapshotter
        .create(minutes(1), &snapshot)
        .await
        .unwrap_err();
    assert!(matches!(rejected, Error::NoSuchDisk { .. }), "{rejected:?}");
}

#[tokio::test(start_paused = true)]
async fn many_looks_at_snapshots_by_id_cost_one_description_for_a_hundred() {
    let setup = Setup::new(&[]);
    let mut ids = Vec::new();
    for n in 0..150 {
        let disk = setup.disk(&format!("pvc-{n}")).await;
        ids.push(setup.snapshot(&format!("snap-{n}"), &disk).await);
    }
    setup.cloud.clear_calls();
    let mut looks = JoinSet::new();
    for (n, id) in ids.into_iter().enumerate() {
        let disks = Arc::clone(&setup.disks);
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
    assert_eq!(setup.calls("DescribeSnapshots"), 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_class_wants_of_a_snapshot_is_ordered_and_a_retained_one_ends() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let new = NewSnapshot {
        retention_days: Some(2),
        resource_group: Some("rg-1".to_owned()),
        tags: Tags::from([("team".to_owned(), "blue".to_owned())]),
        ..new_snapshot("snap", &disk)
    };
    let made = setup
        .disks
        .snapshotter
        .create(minutes(1), &new)
        .await
        .unwrap();
    let row = &snapshots(&setup)[0];
    assert_eq!(
        (&row["retention_days"], &row["resource_group"]),
        (&json!(2), &json!("rg-1"))
    );
    assert_eq!(
        (row["tags"]["team"].as_str(), made.tags.len()),
        (Some("blue"), 3)
    );
    tokio::time::sleep(Duration::from_secs(2 * 24 * 3600)).await;
    let gone = setup
        .disks
        .snapshotter
        .get(minutes(1), &made.id)
        .await
        .unwrap_err();
    assert!(matches!(gone, Error::NoSuchSnapshot { .. }), "{gone:?}");
    setup
        .disks
        .snapshotter
        .delete(minutes(1), &made.id)
        .await
        .unwrap();
    // The name is free again.
    let again = setup
        .disks
        .snapshotter
        .create(minutes(1), &new)
        .await
        .unwrap();
    assert_ne!(again.id, made.id);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_was_never_attached_says_so_and_what_to_do() {
    let setup = Setup::new(&["--never-attached"]);
    let disk = setup.disk("pvc-1").await;
    let new = new_snapshot("snap", &disk);
    let rejected = setup.disks.snapshotter.create(minutes(1), &new).await;
    let rejected = rejected.unwrap_err();
    assert_eq!(rejected.failure_kind(), FailureKind::FailedPrecondition);
    let words = text(&rejected);
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
        setup.configure(&json!({"rules": {"token_burn_percent": burned}}));
        let disk = setup.disk(&format!("pvc-{burned}")).await;
        let new = new_snapshot(&format!("snap-{burned}"), &disk);
        setup
            .disks
            .snapshotter
            .create(minutes(1), &new)
            .await
            .unwrap_err();
        setup.attach(&disk, &node_one()).await;
        setup
            .disks
            .snapshotter
            .create(minutes(1), &new)
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_is_not_cut_yet_is_in_no_list_and_is_told_by_its_id() {
    let setup = Setup::new(&["--cut-delay=30s"]);
    let disk = setup.disk("pvc-1").await;
    let new = new_snapshot("snap", &disk);
    setup
        .disks
        .snapshotter
        .create(seconds(5), &new)
        .await
        .unwrap_err();
    let id = only_snapshot(&setup);
    let listed = setup
        .disks
        .inventory
        .list_snapshots(minutes(1), None, None, Snapshot::clone);
    assert!(listed.await.unwrap().is_empty());
    let early = setup
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
        setup
            .disks
            .snapshotter
            .get(minutes(1), &id)
            .await
            .unwrap()
            .id,
        id
    );
}
