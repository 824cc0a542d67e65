//! Cloning disks through a temporary snapshot.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn a_clone_is_created_from_a_snapshot_that_is_deleted_afterwards() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&["--cut-delay=2s", "--create-delay=3s", "--never-attached", stale]);
        let source = setup.attached("source").await;
        let disk = setup.clone_disk(&new_disk("pvc-1"), &source).await;
        assert_ne!(disk.id, source);
        assert!(disk.source_snapshot.is_some());
        assert!(setup.snapshots().is_empty());
        // A repeated call creates no second snapshot, before or after a restart.
        for process in [setup.clone(), setup.restarted()] {
            sleep(2).await;
            let again = process.clone_disk(&new_disk("pvc-1"), &source).await;
            assert_eq!((again.id, setup.snapshots().len()), (disk.id.clone(), 0));
        }
        assert_eq!((setup.calls("CreateSnapshot"), setup.rows().len()), (1, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_clone_can_differ_in_zone_and_category_and_be_larger_but_not_smaller() {
    let setup = Setup::new(&[]);
    let source = setup.attached("source").await;
    let new = NewDisk {
        zones: vec![zone("b").into()],
        categories: vec![Category::CloudSsd],
        size: gib(30),
        ..new_disk("pvc-1")
    };
    let disk = setup.clone_disk(&new, &source).await;
    assert_eq!((disk.zone, disk.size.0), (Some(zone("b")), 30));
    let new = sized("pvc-2", gib(1));
    assert_eq!(setup.clone_disk(&new, &source).await.size.0, 20);
    let new = sized("pvc-3", between(1, 19));
    let rejected = setup.try_clone(minutes(1), &new, &source).await.unwrap_err();
    assert!(matches!(rejected, Error::OutOfRange { .. }), "{rejected:?}");
    assert_names(&rejected, &[source.as_str()]);
    // The error is detected before a snapshot is created.
    assert_eq!((setup.calls("CreateSnapshot"), setup.snapshots().len()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn the_clone_of_a_never_attached_disk_is_blank() {
    let setup = Setup::new(&["--never-attached"]);
    let source = setup.disk("source").await;
    let new = sized("pvc-1", gib(1));
    let disk = setup.clone_disk(&new, &source).await;
    assert_eq!((disk.source_snapshot.clone(), disk.size.0), (None, 20));
    let again = setup.restarted().clone_disk(&new, &source).await;
    assert_eq!(again.id, disk.id);
    // A disk restored from a snapshot is not blank, although it was never attached.
    setup.attach(&source, &node_one()).await;
    let snapshot = setup.snapshot("snap", &source).await;
    let restored = restored("restored", &snapshot);
    let restored = setup.create(&restored).await.id;
    let rejected = setup
        .try_clone(minutes(1), &new_disk("pvc-2"), &restored)
        .await
        .unwrap_err();
    assert!(matches!(rejected, Error::NeverAttached { .. }), "{rejected:?}");
    assert_eq!(rejected.failure_kind(), FailureKind::FailedPrecondition);
}

#[tokio::test(start_paused = true)]
async fn a_used_name_with_another_source_fails() {
    let setup = Setup::without_canary(&["--stale=1s"]);
    let (source, other) = (setup.attached("source").await, setup.attached("other").await);
    let disk = setup.clone_disk(&new_disk("pvc-1"), &source).await;
    let blank = setup.disk("pvc-2").await;
    sleep(2).await;
    for (name, from, parts) in [
        (
            "pvc-1",
            Some(&other),
            [disk.id.as_str(), source.as_str(), other.as_str()],
        ),
        ("pvc-2", Some(&source), [blank.as_str(), "none", source.as_str()]),
        ("pvc-1", None, [disk.id.as_str(), source.as_str(), "wanted none"]),
    ] {
        let rejected = match from {
            Some(from) => setup.try_clone(minutes(1), &new_disk(name), from).await,
            None => setup.try_create(minutes(1), &new_disk(name)).await,
        };
        let rejected = rejected.unwrap_err();
        assert!(matches!(rejected, Error::AlreadyExists { .. }), "{}", text(&rejected));
        assert_names(&rejected, &parts);
    }
    assert!(setup.snapshots().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_source_deleted_meanwhile_can_be_cloned() {
    let setup = Setup::new(&["--snapshot-delay=30s"]);
    let slow = of_category("source", Category::CloudEfficiency);
    let source = setup.create(&slow).await.id;
    let late = setup.try_clone(seconds(10), &new_disk("pvc-1"), &source).await;
    assert_eq!(late.unwrap_err().failure_kind(), FailureKind::DeadlineExceeded);
    sleep(25).await;
    setup.delete(&source).await;
    let (restarted, new) = (setup.restarted(), new_disk("pvc-1"));
    let create = async || restarted.try_clone(seconds(30), &new, &source).await;
    let disk = retry(100, create).await.unwrap();
    assert_eq!((setup.only_disk(), setup.snapshots().len()), (disk.id, 0));
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_of_any_call_leaves_one_clone_and_no_snapshot_after_a_restart() {
    for action in [
        "CreateSnapshot",
        "DescribeSnapshots",
        "CreateDisk",
        "DescribeDisks",
        "DeleteSnapshot",
    ] {
        for loss in ["reset-before", "reset-after", "truncated", "internal-error-after"] {
            for nth in 1..3 {
                let setup = Setup::new(&["--cut-delay=1s", "--create-delay=1s", "--stale=1s"]);
                let source = setup.attached("source").await;
                setup.clear_faults();
                let fault = json!({"action": action, "from": nth, "times": 1_000_000, "kind": loss});
                setup.configure(&json!({"faults": [fault]}));
                // Until its deadline the client's retries fail too.
                for process in [setup.clone(), setup.restarted()] {
                    let new = available("pvc-1");
                    let _ = process.try_clone(seconds(10), &new, &source).await;
                }
                setup.clear_faults();
                let disk = setup.restarted().clone_disk(&available("pvc-1"), &source).await;
                assert_eq!((setup.rows().len(), setup.snapshots().len()), (2, 0), "{nth}");
                assert_ne!(disk.id, source);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_out_of_stock_clone_keeps_its_snapshot_for_a_retry_in_another_zone() {
    let setup = Setup::new(&[]);
    let source = setup.attached("source").await;
    let mut process = setup.clone();
    for out_of_stock in [json!(["*/*"]), json!(["cn-beijing-a/*"])] {
        setup.configure(&json!({"out_of_stock": out_of_stock}));
        // A refusal is final once the process has been active for a minute.
        sleep(61).await;
        for _ in 0..3 {
            let rejected = process.try_clone(minutes(1), &new_disk("pvc-1"), &source).await;
            assert_eq!(rejected.unwrap_err().failure_kind(), FailureKind::ResourceExhausted);
        }
        process = setup.restarted();
    }
    // The external provisioner retries with another zone.
    let new = in_zone("pvc-1", "b");
    let disk = process.clone_disk(&new, &source).await;
    assert_eq!((disk.zone, setup.snapshots().len()), (Some(zone("b")), 0));
    assert_eq!(setup.calls("CreateSnapshot"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_snapshot_of_a_clone_that_nobody_retries_is_deleted_after_a_day() {
    let setup = Setup::new(&[]);
    let source = setup.attached("source").await;
    setup.configure(&json!({"out_of_stock": ["*/*"]}));
    let rejected = setup.try_clone(minutes(1), &new_disk("pvc-1"), &source).await;
    assert_eq!(rejected.unwrap_err().failure_kind(), FailureKind::ResourceExhausted);
    assert_eq!(setup.snapshots().len(), 1);
    sleep(24 * 3600).await;
    assert!(setup.snapshots().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_clone_of_an_encrypted_disk_is_encrypted() {
    let setup = Setup::new(&[]);
    let encrypted = NewDisk {
        encrypted: true,
        ..new_disk("source")
    };
    let source = setup.create(&encrypted).await.id;
    assert!(setup.clone_disk(&new_disk("pvc-1"), &source).await.encrypted);
}

#[tokio::test(start_paused = true)]
async fn a_replayed_never_attached_error_does_not_make_the_clone_of_a_used_disk_blank() {
    let setup = Setup::new(&["--never-attached"]);
    let source = setup.disk("source").await;
    setup.configure(&json!({"out_of_stock": ["*/*"]}));
    let early = setup.try_clone(minutes(1), &new_disk("pvc-1"), &source).await;
    assert!(early.is_err() && setup.calls("CreateSnapshot") > 0);
    setup.configure(&json!({"out_of_stock": []}));
    setup.attach(&source, &node_one()).await;
    let disk = setup.restarted().clone_disk(&new_disk("pvc-1"), &source).await;
    assert!(disk.source_snapshot.is_some());
}
