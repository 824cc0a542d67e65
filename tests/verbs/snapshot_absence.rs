//! Empty responses of reads, as an account without permission gets them: they prove nothing about snapshots.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use diskplugin::disk::{Error, FailureKind};
use diskplugin::model::{Failure, SnapshotId};

use crate::kit::{Setup, minutes, new_snapshot, seconds, text};
use crate::snapshot::{only_snapshot, snapshots};

const FLAGS: [&str; 2] = ["--cut-delay=2s", "--stale=0s..2s"];

/// From now on these actions return 200 and no rows.
pub(crate) fn hide(setup: &Setup, actions: &[&str]) {
    let fault = |action: &&str| json!({"action": action, "for": "24h", "kind": "no-rows"});
    let faults: Vec<_> = actions.iter().map(fault).collect();
    setup.configure(&json!({"faults": []}));
    setup.configure(&json!({"faults": faults}));
}

pub(crate) fn show(setup: &Setup) {
    setup.configure(&json!({"faults": []}));
}

/// The caller must repeat the call.
pub(crate) fn assert_not_final(error: &Error) {
    let meaning = error.failure_kind();
    assert!(!meaning.is_final(), "{meaning:?}: {}", text(error));
}

/// `UNAVAILABLE` or `DEADLINE_EXCEEDED`.
pub(crate) fn assert_unavailable(error: &Error) {
    let meaning = error.failure_kind();
    let codes = [FailureKind::Unavailable, FailureKind::DeadlineExceeded];
    assert!(codes.contains(&meaning), "{meaning:?}: {}", text(error));
}

fn assert_names_permission(error: &Error, action: &str) {
    assert_eq!(
        error.failure_kind(),
        FailureKind::Unavailable,
        "{}",
        text(error)
    );
    let permission = format!("ecs:{action}");
    assert!(text(error).contains(&permission), "{}", text(error));
}

#[tokio::test(start_paused = true)]
async fn empty_responses_during_two_creations_take_one_snapshot_that_is_returned_afterwards() {
    for settled in [false, true] {
        for others in [0, 1] {
            let setup = match settled {
                true => Setup::long_running(&FLAGS).await,
                false => Setup::new(&FLAGS),
            };
            let disk = setup.disk("pvc-1").await;
            for other in 0..others {
                setup.snapshot(&format!("other-{other}"), &disk).await;
            }
            let new = new_snapshot("snap", &disk);
            hide(&setup, &["DescribeSnapshots"]);
            for _ in 0..2 {
                let begun = tokio::time::Instant::now();
                let blind = setup.disks.snapshotter.create(seconds(45), &new).await;
                assert_unavailable(&blind.unwrap_err());
                tokio::time::sleep_until(begun + Duration::from_secs(45)).await;
            }
            assert_eq!(snapshots(&setup).len(), others + 1);
            show(&setup);
            let made = setup.disks.snapshotter.create(minutes(1), &new).await;
            let made = made.unwrap_or_else(|error| panic!("{}", text(&error)));
            assert_eq!(made.source_disk.as_ref(), Some(&disk));
            assert_eq!(snapshots(&setup).len(), others + 1);
            assert!(
                snapshots(&setup)
                    .iter()
                    .any(|row| row["id"] == made.id.as_str())
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_reads_hide_is_neither_reported_deleted_nor_missing() {
    let setup = Setup::new(&FLAGS);
    let disk = setup.disk("pvc-1").await;
    let id = setup.snapshot("snap", &disk).await;
    // A new process, which has created nothing itself.
    let disks = setup.restarted();
    hide(&setup, &["DescribeSnapshots"]);
    let deleted = disks.snapshotter.delete(seconds(30), &id).await;
    assert_names_permission(&deleted.unwrap_err(), "DescribeSnapshots");
    let read = disks.snapshotter.get(seconds(30), &id).await;
    assert_names_permission(&read.unwrap_err(), "DescribeSnapshots");
    assert_eq!(only_snapshot(&setup), id);
    show(&setup);
    disks.snapshotter.delete(minutes(1), &id).await.unwrap();
    assert!(snapshots(&setup).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_hidden_snapshot_of_another_owner_is_never_deleted() {
    for (cloud_answers_missing, others) in [(false, 0), (true, 0), (true, 1)] {
        let flags: &[&str] = if cloud_answers_missing {
            &["--missing-is-error"]
        } else {
            &[]
        };
        let setup = Setup::new(flags);
        let disk = setup.disk("pvc-1").await;
        let neighbour = setup.other_cluster();
        let theirs = neighbour
            .snapshotter
            .create(minutes(1), &new_snapshot("theirs", &disk))
            .await;
        let theirs = theirs.unwrap().id;
        for other in 0..others {
            setup.snapshot(&format!("other-{other}"), &disk).await;
        }
        hide(&setup, &["DescribeSnapshots"]);
        let rejected = setup.disks.snapshotter.delete(seconds(30), &theirs).await;
        assert_names_permission(&rejected.unwrap_err(), "DescribeSnapshots");
        show(&setup);
        let rejected = setup.disks.snapshotter.delete(minutes(1), &theirs).await;
        assert!(
            matches!(&rejected, Err(error) if error.failure() == Failure::NotOwned),
            "{rejected:?}"
        );
        assert_eq!(snapshots(&setup).len(), 1 + others);
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_is_gone_is_deleted_again_also_where_no_snapshot_is_left() {
    for others in [0, 1] {
        let setup = Setup::new(&["--stale=2s"]);
        let disk = setup.disk("pvc-1").await;
        for other in 0..others {
            setup.snapshot(&format!("other-{other}"), &disk).await;
        }
        let id = setup.snapshot("snap", &disk).await;
        for disks in [Arc::clone(&setup.disks), setup.restarted()] {
            disks.snapshotter.delete(minutes(1), &id).await.unwrap();
            tokio::time::sleep(Duration::from_secs(3)).await;
            // In vain as well: the cloud itself says that there is no such snapshot.
            let missing = disks.snapshotter.get(seconds(30), &id).await;
            let missing = missing.unwrap_err();
            assert!(
                matches!(missing, Error::NoSuchSnapshot { .. }),
                "{}",
                text(&missing)
            );
        }
        let never: SnapshotId = "s-none".parse().unwrap();
        setup
            .disks
            .snapshotter
            .delete(minutes(1), &never)
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_another_process_deleted_is_taken_again_where_no_snapshot_is_left() {
    let setup = Setup::new(&FLAGS);
    let disk = setup.disk("pvc-1").await;
    let new = new_snapshot("snap", &disk);
    let first = setup.disks.snapshotter.create(minutes(1), &new).await;
    let first = first.unwrap().id;
    setup
        .restarted()
        .snapshotter
        .delete(minutes(1), &first)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    // Its token is still answered with the deleted one.
    let second = setup.restarted().snapshotter.create(minutes(1), &new).await;
    let second = second.unwrap_or_else(|error| panic!("{}", text(&error)));
    assert_eq!(
        (only_snapshot(&setup), second.id == first),
        (second.id, false)
    );
}
