//! Empty responses, as an account without the permission receives them, do not prove that a snapshot is absent.

use crate::verbs::kit::*;

const FLAGS: [&str; 2] = ["--cut-delay=2s", "--stale=0s..2s"];

/// The actions return status 200 without rows until the faults are cleared.
pub(crate) fn hide(setup: &Setup, actions: &[&str]) {
    let fault = |action: &&str| json!({"action": action, "for": "24h", "kind": "no-rows"});
    setup.replace_faults(&actions.iter().map(fault).collect());
}

fn assert_names_permission(error: &Error) {
    assert_error(error, FailureKind::Unavailable, &["ecs:DescribeSnapshots"]);
}

#[tokio::test(start_paused = true)]
async fn two_creates_with_empty_responses_result_in_one_snapshot_that_is_returned_later() {
    for others in [0, 1] {
        let setup = Setup::new(&FLAGS);
        let disk = setup.disk("pvc-1").await;
        for other in 0..others {
            setup.snapshot(&format!("other-{other}"), &disk).await;
        }
        let new = new_snapshot("snap", &disk);
        hide(&setup, &["DescribeSnapshots"]);
        for _ in 0..2 {
            let started = Instant::now();
            assert_unavailable(&setup.try_snapshot(seconds(45), &new).await.unwrap_err());
            tokio::time::sleep_until(started + Duration::from_secs(45)).await;
        }
        assert_eq!(setup.snapshots().len(), others + 1);
        setup.clear_faults();
        let created = setup.create_snapshot(&new).await;
        assert_eq!(created.source_disk.as_ref(), Some(&disk));
        assert_eq!(setup.snapshots().len(), others + 1);
        assert!(setup.snapshots().iter().any(|row| row["id"] == created.id.as_str()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_hidden_snapshot_is_reported_neither_as_deleted_nor_as_not_found() {
    let setup = Setup::new(&FLAGS);
    let disk = setup.disk("pvc-1").await;
    let id = setup.snapshot("snap", &disk).await;
    // A new process, which has not created the snapshot itself.
    let restarted = setup.restarted();
    hide(&setup, &["DescribeSnapshots"]);
    let deleted = restarted.try_delete_snapshot(seconds(30), &id).await;
    assert_names_permission(&deleted.unwrap_err());
    let read = restarted.disks.snapshotter.get(seconds(30), &id).await;
    assert_names_permission(&read.unwrap_err());
    assert_eq!(setup.only_snapshot(), id);
    setup.clear_faults();
    restarted.try_delete_snapshot(minutes(1), &id).await.unwrap();
    assert!(setup.snapshots().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_hidden_snapshot_of_another_cluster_is_never_deleted() {
    for (missing_is_error, others) in [(false, 0), (true, 0), (true, 1)] {
        let flags: &[&str] = if missing_is_error { &["--missing-is-error"] } else { &[] };
        let setup = Setup::new(flags);
        let disk = setup.disk("pvc-1").await;
        let foreign = setup.other_cluster().snapshot("foreign", &disk).await;
        for other in 0..others {
            setup.snapshot(&format!("other-{other}"), &disk).await;
        }
        hide(&setup, &["DescribeSnapshots"]);
        let rejected = setup.try_delete_snapshot(seconds(30), &foreign).await;
        assert_names_permission(&rejected.unwrap_err());
        setup.clear_faults();
        let rejected = setup.try_delete_snapshot(minutes(1), &foreign).await;
        assert_failure(&rejected.unwrap_err(), Failure::NotOwned);
        assert_eq!(setup.snapshots().len(), 1 + others);
    }
}

#[tokio::test(start_paused = true)]
async fn deleting_a_deleted_snapshot_succeeds_once_another_snapshot_shows_that_reads_are_allowed() {
    let setup = Setup::new(&["--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    let id = setup.snapshot("snap", &disk).await;
    for _ in 0..2 {
        setup.try_delete_snapshot(minutes(1), &id).await.unwrap();
        let not_found = setup.disks.snapshotter.get(seconds(30), &id).await;
        assert!(matches!(not_found, Err(Error::NoSuchSnapshot { .. })), "{not_found:?}");
    }
    sleep(3).await;
    // A new process cannot distinguish a deleted snapshot from a denied ecs:DescribeSnapshots.
    let restarted = setup.restarted();
    let delete = async || restarted.try_delete_snapshot(seconds(20), &id).await;
    assert_names_permission(&retry(200, delete).await.unwrap_err());
    // Any snapshot of the account is sufficient.
    setup.other_cluster().snapshot("foreign", &disk).await;
    retry(200, delete).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_deleted_by_another_process_is_created_again() {
    let setup = Setup::new(&FLAGS);
    let disk = setup.disk("pvc-1").await;
    setup.snapshot("canary", &disk).await;
    let new = new_snapshot("snap", &disk);
    let first = setup.create_snapshot(&new).await.id;
    let deleted = setup.restarted();
    deleted.try_delete_snapshot(minutes(1), &first).await.unwrap();
    sleep(3).await;
    // The cloud still returns the deleted snapshot for its token, which could be a new and hidden one for ten minutes.
    let restarted = setup.restarted();
    let create = async || restarted.try_snapshot(seconds(20), &new).await;
    let second = expect("create", retry(900, create).await);
    assert_ne!(second.id, first);
    assert_eq!(setup.snapshots().len(), 2);
}
