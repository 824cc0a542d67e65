//! Empty responses, as an account without the permission receives them, do not prove that a snapshot is absent.

use std::time::Duration;

use serde_json::json;

use diskplugin::disk::{Error, FailureKind};
use diskplugin::model::Failure;

use crate::verbs::kit::create::retry;
use crate::verbs::kit::{Setup, minutes, new_snapshot, seconds, text};
use crate::verbs::snapshot::{create_snapshot, only_snapshot, snapshots};

const FLAGS: [&str; 2] = ["--cut-delay=2s", "--stale=0s..2s"];

/// The actions return status 200 without rows until [`show`].
pub(crate) fn hide(setup: &Setup, actions: &[&str]) {
    let fault = |action: &&str| json!({"action": action, "for": "24h", "kind": "no-rows"});
    let faults: Vec<_> = actions.iter().map(fault).collect();
    setup.configure(&json!({"faults": []}));
    setup.configure(&json!({"faults": faults}));
}

pub(crate) fn show(setup: &Setup) {
    setup.configure(&json!({"faults": []}));
}

/// Asserts that the error is not final, so that the caller repeats the call.
pub(crate) fn assert_not_final(error: &Error) {
    let kind = error.failure_kind();
    assert!(!kind.is_final(), "{kind:?}: {}", text(error));
}

/// Asserts that the error is `UNAVAILABLE` or `DEADLINE_EXCEEDED`.
pub(crate) fn assert_unavailable(error: &Error) {
    let kind = error.failure_kind();
    let codes = [FailureKind::Unavailable, FailureKind::DeadlineExceeded];
    assert!(codes.contains(&kind), "{kind:?}: {}", text(error));
}

fn assert_names_permission(error: &Error, action: &str) {
    assert_eq!(error.failure_kind(), FailureKind::Unavailable, "{}", text(error));
    let permission = format!("ecs:{action}");
    assert!(text(error).contains(&permission), "{}", text(error));
}

#[tokio::test(start_paused = true)]
async fn two_creates_with_empty_responses_result_in_one_snapshot_that_is_returned_later() {
    for long_running in [false, true] {
        for others in [0, 1] {
            let setup = match long_running {
                true => Setup::new(&FLAGS),
                false => Setup::new(&FLAGS),
            };
            let disk = setup.disk("pvc-1").await;
            for other in 0..others {
                setup.snapshot(&format!("other-{other}"), &disk).await;
            }
            let new = new_snapshot("snap", &disk);
            hide(&setup, &["DescribeSnapshots"]);
            for _ in 0..2 {
                let started = tokio::time::Instant::now();
                let unavailable = setup.disks.snapshotter.create(seconds(45), &new).await;
                assert_unavailable(&unavailable.unwrap_err());
                tokio::time::sleep_until(started + Duration::from_secs(45)).await;
            }
            assert_eq!(snapshots(&setup).len(), others + 1);
            show(&setup);
            let created = create_snapshot(&setup, &new).await;
            assert_eq!(created.source_disk.as_ref(), Some(&disk));
            assert_eq!(snapshots(&setup).len(), others + 1);
            assert!(snapshots(&setup).iter().any(|row| row["id"] == created.id.as_str()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hidden_snapshot_is_reported_neither_as_deleted_nor_as_not_found() {
    let setup = Setup::new(&FLAGS);
    let disk = setup.disk("pvc-1").await;
    let id = setup.snapshot("snap", &disk).await;
    // A new process, which has not created the snapshot itself.
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
async fn a_hidden_snapshot_of_another_cluster_is_never_deleted() {
    for (missing_is_error, others) in [(false, 0), (true, 0), (true, 1)] {
        let flags: &[&str] = if missing_is_error { &["--missing-is-error"] } else { &[] };
        let setup = Setup::new(flags);
        let disk = setup.disk("pvc-1").await;
        let foreign = setup
            .other_cluster()
            .snapshotter
            .create(minutes(1), &new_snapshot("foreign", &disk))
            .await;
        let foreign = foreign.unwrap().id;
        for other in 0..others {
            setup.snapshot(&format!("other-{other}"), &disk).await;
        }
        hide(&setup, &["DescribeSnapshots"]);
        let rejected = setup.disks.snapshotter.delete(seconds(30), &foreign).await;
        assert_names_permission(&rejected.unwrap_err(), "DescribeSnapshots");
        show(&setup);
        let rejected = setup.disks.snapshotter.delete(minutes(1), &foreign).await;
        assert!(
            matches!(&rejected, Err(error) if error.failure() == Failure::NotOwned),
            "{rejected:?}"
        );
        assert_eq!(snapshots(&setup).len(), 1 + others);
    }
}

#[tokio::test(start_paused = true)]
async fn deleting_a_deleted_snapshot_succeeds_once_another_snapshot_shows_that_reads_are_allowed() {
    let setup = Setup::new(&["--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    let id = setup.snapshot("snap", &disk).await;
    for _ in 0..2 {
        setup.disks.snapshotter.delete(minutes(1), &id).await.unwrap();
        let not_found = setup.disks.snapshotter.get(seconds(30), &id).await;
        assert!(matches!(not_found, Err(Error::NoSuchSnapshot { .. })), "{not_found:?}");
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    // A new process cannot tell a deleted snapshot from a denied ecs:DescribeSnapshots.
    let disks = setup.restarted();
    let delete = async || disks.snapshotter.delete(seconds(20), &id).await;
    assert_names_permission(&retry(200, delete).await.unwrap_err(), "DescribeSnapshots");
    // Any snapshot of the account is sufficient.
    setup
        .other_cluster()
        .snapshotter
        .create(minutes(1), &new_snapshot("foreign", &disk))
        .await
        .unwrap();
    retry(200, delete).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_deleted_by_another_process_is_created_again() {
    let setup = Setup::new(&FLAGS);
    let disk = setup.disk("pvc-1").await;
    setup.snapshot("canary", &disk).await;
    let new = new_snapshot("snap", &disk);
    let first = create_snapshot(&setup, &new).await.id;
    let deleted = setup.restarted();
    deleted.snapshotter.delete(minutes(1), &first).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    // The cloud still returns the deleted snapshot for its token, which could be a new and hidden one for ten minutes.
    let restarted = setup.restarted();
    let create = async || restarted.snapshotter.create(seconds(20), &new).await;
    let second = retry(900, create)
        .await
        .unwrap_or_else(|error| panic!("{}", text(&error)));
    assert_ne!(second.id, first);
    assert_eq!(snapshots(&setup).len(), 2);
}
