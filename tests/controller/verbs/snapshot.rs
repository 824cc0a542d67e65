//! Creation of snapshots.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn create_returns_once_the_snapshot_is_cut_without_waiting_for_the_copy() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&["--cut-delay=4s", "--snapshot-delay=10m", stale]);
        let disk = setup.disk("pvc-1").await;
        let started = Instant::now();
        let created = setup.create_snapshot(&new_snapshot("snap", &disk)).await;
        assert!(started.elapsed() >= Duration::from_secs(4) && started.elapsed() < Duration::from_secs(7));
        assert!(created.created.is_some());
        assert_eq!((created.source_disk.as_ref(), created.source_size.0), (Some(&disk), 20));
    }
}

#[tokio::test(start_paused = true)]
async fn only_essd_snapshots_are_ready_before_they_are_complete() {
    for (category, ready) in [(Category::CloudEssd, true), (Category::CloudEfficiency, false)] {
        let setup = Setup::new(&["--snapshot-delay=10m"]);
        let new = of_category("pvc-1", category);
        let disk = setup.create(&new).await.id;
        let snapshot = new_snapshot("snap", &disk);
        let created = setup.create_snapshot(&snapshot).await;
        assert_eq!(created.available, ready);
        sleep(600).await;
        let later = setup.create_snapshot(&snapshot).await;
        assert_eq!((later.id, later.available), (created.id, true));
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_create_returns_the_same_snapshot_and_another_source_is_rejected() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::without_canary(&["--cut-delay=1s", stale]);
        let (disk, other) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
        let first = setup.snapshot("snap", &disk).await;
        let again = setup.restarted().create_snapshot(&new_snapshot("snap", &disk)).await;
        assert_eq!(again.id, first);
        let new = new_snapshot("snap", &other);
        let rejected = setup.try_snapshot(minutes(1), &new).await.unwrap_err();
        assert!(matches!(rejected, Error::AlreadyExists { .. }), "{rejected:?}");
        let both = format!("source volume is {disk}, wanted {other}");
        assert_names(&rejected, &[&both, first.as_str()]);
        assert_eq!(setup.only_snapshot(), first);
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeat_after_a_lost_response_returns_the_only_snapshot() {
    for loss in ["reset-before", "reset-after", "truncated", "internal-error-after"] {
        for category in [Category::CloudEssd, Category::CloudEfficiency] {
            let setup = Setup::new(&["--cut-delay=2s", "--snapshot-delay=1m", "--stale=2s"]);
            let new = of_category("pvc-1", category);
            let disk = setup.create(&new).await.id;
            let snapshot = new_snapshot("snap", &disk);
            let create = setup.try_snapshot(seconds(1), &snapshot);
            setup.lose("CreateSnapshot", &json!(loss), create).await;
            let created = setup.restarted().create_snapshot(&snapshot).await;
            assert_eq!(setup.only_snapshot(), created.id);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_in_progress_aborts_another_and_a_consumed_token_does_not_block_the_retry() {
    for percent in [0, 100] {
        let setup = Setup::new(&["--snapshot-delay=30s"]);
        setup.configure(&json!({"rules": {"token_burn_percent": percent}}));
        let new = of_category("pvc-1", Category::CloudEfficiency);
        let disk = setup.create(&new).await.id;
        setup.snapshot("snap-1", &disk).await;
        let second = new_snapshot("snap-2", &disk);
        let busy = setup.try_snapshot(seconds(10), &second).await.unwrap_err();
        assert_error(&busy, FailureKind::Aborted, &[]);
        sleep(30).await;
        let created = setup.create_snapshot(&second).await;
        let again = setup.restarted().create_snapshot(&second).await;
        assert_eq!((again.id, setup.snapshots().len()), (created.id, 2), "{percent} %");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_snapshot_is_created_again_even_by_calls_with_short_deadlines() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let first = setup.snapshot("snap", &disk).await;
    setup.delete_snapshot(&first).await;
    let mut attempts = 0;
    let created = loop {
        let deadline = Deadline::after(Duration::from_millis(9750));
        let new = new_snapshot("snap", &disk);
        if let Ok(created) = setup.try_snapshot(deadline, &new).await {
            break created.id;
        }
        attempts += 1;
        assert!(attempts < 3);
    };
    assert_eq!(setup.only_snapshot(), created);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_fails_before_its_cut_is_reported_deleted_and_created_again() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&["--cut-delay=2s", stale]);
        let disk = setup.disk("pvc-1").await;
        setup.fault("CreateSnapshot", &json!("fails-later"));
        let new = new_snapshot("snap", &disk);
        let failed = setup.try_snapshot(minutes(1), &new).await.unwrap_err();
        assert_error(&failed, FailureKind::Internal, &["it is deleted"]);
        assert!(setup.snapshots().is_empty());
        let created = setup.create_snapshot(&new).await;
        assert_eq!(setup.only_snapshot(), created.id);
        let again = setup.restarted().create_snapshot(&new).await;
        assert_eq!(again.id, created.id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_after_the_deadline_is_reported_and_a_repeat_returns_the_snapshot() {
    let setup = Setup::new(&["--cut-delay=30s"]);
    let disk = setup.disk("pvc-1").await;
    let snapshot = new_snapshot("snap", &disk);
    let late = setup.try_snapshot(seconds(10), &snapshot).await.unwrap_err();
    assert_eq!(late.failure_kind(), FailureKind::DeadlineExceeded);
    let id = setup.only_snapshot();
    assert_names(&late, &[&format!("last observed: snapshot {id} is progressing")]);
    let created = setup.restarted().create_snapshot(&snapshot).await;
    assert_eq!((created.id, setup.snapshots().len()), (id, 1));
}

#[tokio::test(start_paused = true)]
async fn the_parameters_of_the_class_are_applied_and_the_retention_period_ends() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let new = NewSnapshot {
        retention_days: Some(2),
        resource_group: Some("rg-1".to_owned()),
        tags: Tags::from([("team".to_owned(), "blue".to_owned())]),
        ..new_snapshot("snap", &disk)
    };
    let created = setup.create_snapshot(&new).await;
    let row = &setup.snapshots()[0];
    assert_eq!(
        (&row["retention_days"], &row["resource_group"]),
        (&json!(2), &json!("rg-1"))
    );
    assert_eq!((row["tags"]["team"].as_str(), created.tags.len()), (Some("blue"), 3));
    setup.snapshot("canary", &disk).await;
    sleep(2 * 24 * 3600).await;
    let get = async || setup.disks.snapshotter.get(seconds(20), &created.id).await;
    let not_found = retry(100, get).await.unwrap_err();
    assert!(matches!(not_found, Error::NoSuchSnapshot { .. }), "{not_found:?}");
    setup.delete_snapshot(&created.id).await;
    // The name is available again.
    let again = setup.create_snapshot(&new).await;
    assert_ne!(again.id, created.id);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_of_a_never_attached_disk_is_rejected_with_advice() {
    let setup = Setup::new(&["--never-attached"]);
    let disk = setup.disk("pvc-1").await;
    let new = new_snapshot("snap", &disk);
    let rejected = setup.try_snapshot(minutes(1), &new).await.unwrap_err();
    let parts = ["never attached", disk.as_str(), "start a pod", "NeverAttached"];
    assert_error(&rejected, FailureKind::FailedPrecondition, &parts);
    // After an attach, the same call succeeds, even if the rejection consumed its token.
    for percent in [0, 100] {
        setup.configure(&json!({"rules": {"token_burn_percent": percent}}));
        let disk = setup.disk(&format!("pvc-{percent}")).await;
        let new = new_snapshot(&format!("snap-{percent}"), &disk);
        setup.try_snapshot(minutes(1), &new).await.unwrap_err();
        setup.attach(&disk, &node_one()).await;
        setup.create_snapshot(&new).await;
    }
}
