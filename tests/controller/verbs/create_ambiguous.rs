//! Creating with lost or empty responses: no final error while an unreported disk may exist, and never a second disk.

use crate::verbs::kit::*;

/// Errors with which the cloud rejects a creation, independent of the outcome of an earlier call.
fn rejections() -> Vec<Value> {
    vec![
        error_code(403, "Forbidden.RAM"),
        error_code(403, "InvalidAccountStatus.NotEnoughBalance"),
        error_code(403, "OperationDenied.NoStock"),
        error_code(400, "QuotaExceed.DiskCapacity"),
        error_code(400, "InvalidDiskName.Malformed"),
        error_code(400, "InvalidDataDiskCategory.NotSupported"),
    ]
}

#[tokio::test(start_paused = true)]
async fn empty_responses_create_no_second_disk() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        for others in [0, 1] {
            let setup = Setup::new(&["--create-delay=1s"]);
            setup.other_disks(others).await;
            setup.hide_disks(100);
            for _ in 0..2 {
                let rejected = setup.try_create(seconds(45), &new).await.unwrap_err();
                assert_not_final(&rejected);
                assert_names(&rejected, &["ecs:DescribeDisks"]);
                assert_eq!(setup.rows().len(), others + 1);
            }
            sleep(60).await;
            let disk = setup.create(&new).await;
            assert_eq!(setup.rows().len(), others + 1);
            assert_eq!(setup.row(&disk.id)["status"], "Available");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_after_a_lost_response_is_not_final_and_the_disk_is_found() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        let losses = ["reset-after", "internal-error-after"].into_iter();
        for (loss, rejection) in
            losses.flat_map(|loss| rejections().into_iter().map(move |rejection| (loss, rejection)))
        {
            // The tag index lags, so that the first lookups do not return the disk.
            let setup = Setup::new(&["--create-delay=1s", "--stale=2s"]);
            let lost = json!({"action": "CreateDisk", "kind": loss});
            let rejected = json!({"action": "CreateDisk", "from": 2, "times": 100, "kind": rejection});
            setup.configure(&json!({"faults": [lost, rejected]}));
            for attempt in 0..3 {
                match setup.try_create(seconds(20), &new).await {
                    Ok(disk) => assert_eq!(setup.only_disk(), disk.id),
                    Err(error) => {
                        assert_not_final(&error);
                        assert!(attempt < 2, "{rejection}: {}", text(&error));
                    }
                }
                assert_eq!(setup.rows().len(), 1);
                sleep(3).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_after_a_canceled_creation_is_not_final() {
    let setup = Setup::new(&["--create-delay=1s", "--stale=4s"]);
    setup.fault("CreateDisk", &json!({"delay-after": "5s"}));
    let new = new_disk("pvc-1");
    let call = setup.try_create(minutes(1), &new);
    let cut = timeout(Duration::from_secs(2), call).await;
    assert!(cut.is_err());
    setup.faults("CreateDisk", 100, &error_code(403, "Forbidden.RAM"));
    let rejected = setup.try_create(seconds(9), &new_disk("pvc-1")).await.unwrap_err();
    let parts = ["CREATION_UNRESOLVED", "Forbidden.RAM", "RequestId"];
    assert_error(&rejected, FailureKind::Unavailable, &parts);
    sleep(5).await;
    let disk = setup.try_create(seconds(20), &new_disk("pvc-1")).await;
    assert_eq!(disk.unwrap().id, setup.only_disk());
}

#[tokio::test(start_paused = true)]
async fn a_rejection_is_final_once_a_listing_proves_that_no_disk_was_created() {
    let setup = Setup::new(&[]);
    setup.disk("other").await;
    let lost = json!({"action": "CreateDisk", "kind": "reset-before"});
    let denied = error_code(403, "Forbidden.RAM");
    let rejected = json!({"action": "CreateDisk", "from": 2, "times": 100, "kind": denied});
    setup.configure(&json!({"faults": [lost, rejected]}));
    let create = async || {
        let outcome = setup.try_create(seconds(20), &new_disk("pvc-1")).await;
        outcome.unwrap_err().failure_kind()
    };
    for _ in 0..3 {
        assert_eq!(create().await, FailureKind::Unavailable);
        sleep(10).await;
    }
    // An empty listing does not prove that no disk was created.
    let hidden = json!({"action": "DescribeDisks", "for": "100s", "kind": "no-rows"});
    let rejected = json!({"action": "CreateDisk", "times": 100, "kind": denied});
    setup.configure(&json!({"faults": [rejected, hidden]}));
    for _ in 0..3 {
        sleep(25).await;
        assert_eq!(create().await, FailureKind::Unavailable);
    }
    sleep(60).await;
    // The listing that proves it begins a minute after the last attempt that may have taken effect.
    sleep(60).await;
    create().await;
    sleep(10).await;
    assert_eq!(create().await, FailureKind::PermissionDenied);
    assert_eq!(setup.rows().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_disk_of_a_lost_response_is_found_although_its_zone_is_now_out_of_stock() {
    let setup = Setup::new(&["--stale=2s"]);
    let new = ssd_or_essd("pvc-1");
    setup.lose_create(&json!("reset-after"), &new).await;
    let created = setup.only_disk();
    setup.faults("CreateDisk", 100, &error_code(403, "OperationDenied.NoStock"));
    for _ in 0..2 {
        match setup.try_create(seconds(9), &new).await {
            Ok(disk) => assert_eq!(disk.id, created),
            Err(error) => assert_eq!(error.failure_kind(), FailureKind::Unavailable, "{}", text(&error)),
        }
        sleep(3).await;
    }
    let disk = setup.try_create(seconds(9), &new).await.unwrap();
    assert_eq!((disk.id, setup.only_disk()), (created.clone(), created));
}

#[tokio::test(start_paused = true)]
async fn all_of_many_unresolved_names_are_remembered() {
    let setup = Setup::new(&["--stale=4s"]);
    setup.faults("CreateDisk", 1_000_000, &json!("reset-after"));
    for number in 0..1500 {
        let new = new_disk(&format!("pvc-{number}"));
        let lost = setup.try_create(seconds(1), &new).await;
        assert_not_final(&lost.unwrap_err());
    }
    setup.faults("CreateDisk", 2000, &error_code(403, "Forbidden.RAM"));
    setup.configure(&json!({"stale": {"lag": "1000s"}}));
    for number in 0..1500 {
        let new = new_disk(&format!("pvc-{number}"));
        let rejected = setup.try_create(seconds(9), &new).await;
        assert_eq!(
            rejected.unwrap_err().failure_kind(),
            FailureKind::Unavailable,
            "{number}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_incompatible_request_after_a_lost_response_is_resolved_without_other_disks() {
    for (loss, has_effect) in [("reset-before", false), ("reset-after", true)] {
        let setup = Setup::new(&[]);
        let new = new_disk("pvc-1");
        setup.lose_create(&json!(loss), &new).await;
        let elsewhere = NewDisk {
            zones: vec![zone("b").into()],
            categories: vec![Category::CloudSsd],
            ..new.clone()
        };
        let outcome = setup.try_create(minutes(1), &elsewhere).await;
        if has_effect {
            assert!(matches!(outcome, Err(Error::AlreadyExists { .. })), "{outcome:?}");
        } else {
            assert_eq!(outcome.unwrap().id, setup.only_disk());
        }
        assert_eq!(setup.rows().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_snapshot_is_not_final_while_empty_responses_may_hide_its_disk() {
    let setup = Setup::new(&[]);
    let source = setup.disk("source").await;
    setup.snapshot("canary", &source).await;
    let snapshot = setup.snapshot("snap", &source).await;
    setup.disk("other").await;
    let new = restored("pvc-1", &snapshot);
    setup.lose_create(&json!("reset-after"), &new).await;
    setup.try_delete_snapshot(minutes(1), &snapshot).await.unwrap();
    let other_process = setup.restarted();
    setup.hide_disks(150);
    for _ in 0..2 {
        let rejected = other_process.try_create(seconds(30), &new).await.unwrap_err();
        assert_not_final(&rejected);
        sleep(60).await;
    }
    sleep(60).await;
    let disk = retry(200, async || other_process.try_create(seconds(20), &new).await).await;
    assert_eq!(disk.unwrap().source_snapshot, Some(snapshot));
    assert_eq!(setup.rows().len(), 3);
}
