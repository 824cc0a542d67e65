//! Repeated creations with lost responses, consumed client tokens and stale reads: exactly one disk results.

use crate::verbs::kit::*;

fn losses() -> Vec<Value> {
    vec![
        json!("reset-before"),
        json!("reset-after"),
        json!("truncated"),
        json!("empty"),
        json!("html"),
        json!("internal-error"),
        json!("internal-error-after"),
        json!("service-unavailable"),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_lost_create_response_is_not_final_and_the_retry_returns_the_disk() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        for loss in losses() {
            let setup = Setup::new(&["--create-delay=1s", "--stale=2s"]);
            setup.lose_create(&loss, &new).await;
            let disk = setup.create(&new).await;
            assert_eq!(setup.only_disk(), disk.id);
            // One call survives three losses.
            let setup = Setup::without_canary(&["--create-delay=1s"]);
            setup.faults("CreateDisk", 3, &loss);
            let disk = setup.create(&new).await;
            assert_eq!(setup.only_disk(), disk.id);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_returns_the_disk_of_a_lost_response_after_a_preferred_category_is_back_in_stock() {
    let setup = Setup::new(&["--stale=2s", "--out-of-stock=*/cloud_efficiency"]);
    setup.configure(&json!({"faults": [
        {"action": "CreateDisk", "from": 2, "times": 1_000_000, "kind": "reset-after"}
    ]}));
    setup.try_create(seconds(1), &available("pvc-1")).await.unwrap_err();
    setup.clear_faults();
    let created = setup.only_disk();
    setup.configure(&json!({"out_of_stock": []}));
    // Immediately, before the tag index contains the disk.
    let disk = setup.create(&available("pvc-1")).await;
    assert_eq!((disk.id, setup.only_disk()), (created.clone(), created));
}

#[tokio::test(start_paused = true)]
async fn create_waits_for_a_new_disk_missing_from_stale_reads() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        for flags in [
            ["--stale=2s", "--create-delay=0s"],
            ["--stale=0s..2s", "--stale-jumping"],
        ] {
            let setup = Setup::new(&flags);
            let disk = setup.create(&new).await;
            let again = setup.restarted().create(&new).await;
            assert_eq!([&disk.id, &again.id], [&setup.only_disk(); 2]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_incompatible_request_fails_while_the_tag_index_lags() {
    let setup = Setup::new(&["--stale=2s"]);
    let new = new_disk("pvc-1");
    setup.lose_create(&json!("reset-after"), &new).await;
    let created = setup.only_disk();
    let other = sized("pvc-1", gib(40));
    let rejected = setup.try_create(minutes(1), &other).await.unwrap_err();
    assert!(matches!(rejected, Error::AlreadyExists { .. }), "{rejected:?}");
    assert_eq!(setup.only_disk(), created);
}

#[tokio::test(start_paused = true)]
async fn a_token_consumed_by_failed_calls_does_not_block_creation() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        let setup = Setup::new(&["--out-of-stock=*/*"]);
        setup.configure(&json!({"rules": {"token_burn_percent": 100}}));
        for _ in 0..3 {
            let rejected = setup.try_create(minutes(1), &new).await.unwrap_err();
            assert_eq!(rejected.failure_kind(), FailureKind::ResourceExhausted, "{rejected:?}");
        }
        setup.configure(&json!({"out_of_stock": []}));
        // A new process has no record of the failures and needs a few calls.
        let restarted = setup.restarted();
        let created = retry(120, async || restarted.try_create(seconds(20), &new).await);
        let created = created.await.expect("disks are in stock");
        for process in [&restarted, &setup.restarted()] {
            assert_eq!(process.create(&new).await.id, created.id);
        }
        assert_eq!(setup.only_disk(), created.id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_succeeds_half_a_minute_after_stock_is_available() {
    for burned in [0, 100] {
        let setup = Setup::new(&["--out-of-stock=*/*"]);
        setup.configure(&json!({"rules": {"token_burn_percent": burned}}));
        for _ in 0..4 {
            setup.try_create(minutes(1), &new_disk("pvc-1")).await.unwrap_err();
        }
        setup.configure(&json!({"out_of_stock": []}));
        // All claims share one attempt of the zone and category every 30 seconds.
        sleep(31).await;
        let disk = setup.create(&new_disk("pvc-1")).await;
        assert_eq!(setup.only_disk(), disk.id, "{burned} %");
    }
}

#[tokio::test(start_paused = true)]
async fn the_name_of_a_deleted_disk_that_was_listed_is_available_again_after_a_stock_out() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"rules": {"token_burn_percent": 100}}));
    let new = new_disk("pvc-1");
    let deleted = setup.create(&new).await;
    // The listing of this process contains the disk, and is valid for hours.
    let restarted = setup.restarted();
    sleep(61).await;
    restarted.create(&new_disk("pvc-2")).await;
    restarted.delete(&deleted.id).await;
    setup.configure(&json!({"out_of_stock": ["*/*"]}));
    sleep(61).await;
    let refused = restarted.try_create(minutes(1), &new).await;
    assert!(matches!(refused, Err(Error::OutOfStock { .. })), "{refused:?}");
    setup.configure(&json!({"out_of_stock": []}));
    sleep(31).await;
    let created = restarted.create(&new).await;
    assert_ne!(created.id, deleted.id);
}

#[tokio::test(start_paused = true)]
async fn a_token_consumed_by_a_different_request_results_in_one_disk() {
    let setup = Setup::new(&["--out-of-stock=*/*"]);
    setup.configure(&json!({"rules": {"token_burn_percent": 100}}));
    let larger = sized("pvc-1", gib(40));
    setup.try_create(minutes(1), &larger).await.unwrap_err();
    setup.configure(&json!({"out_of_stock": []}));
    sleep(31).await;
    let disk = setup.create(&new_disk("pvc-1")).await;
    let again = setup.restarted().create(&new_disk("pvc-1")).await;
    assert_eq!([&disk.id, &again.id], [&setup.only_disk(); 2]);
}

#[tokio::test(start_paused = true)]
async fn create_retries_while_the_first_call_is_in_flight() {
    let setup = Setup::without_canary(&[]);
    setup.configure(&json!({"rules": {"token_in_flight": "3s"}}));
    setup.fault("CreateDisk", &json!("reset-after"));
    let disk = setup.create(&new_disk("pvc-1")).await;
    assert_eq!(setup.only_disk(), disk.id);
}

#[tokio::test(start_paused = true)]
async fn a_disk_lost_during_creation_is_replaced_once_after_ten_minutes() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        for stale in ["--stale=0s", "--stale=2s"] {
            let setup = Setup::new(&["--create-delay=2s", stale]);
            setup.fault("CreateDisk", &json!("fails-later"));
            // Indexes can hide a new disk for ten minutes.
            let create = async || setup.try_create(seconds(30), &new).await;
            let hidden = retry(560, create).await.unwrap_err();
            assert_failure(&hidden, Failure::AbsenceUnproven);
            assert!(setup.rows().is_empty());
            let disk = retry(300, create).await.unwrap();
            assert_eq!(setup.only_disk(), disk.id);
            let again = setup.restarted().create(&new).await;
            assert_eq!((again.id, setup.only_disk()), (disk.id.clone(), disk.id));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_disk_is_created_again_by_calls_with_short_deadlines() {
    for deleted in [true, false] {
        let setup = Setup::new(&["--create-delay=12s"]);
        if deleted {
            let disk = setup.disk("pvc-1").await;
            setup.delete(&disk).await;
        } else {
            setup.fault("CreateDisk", &json!("fails-later"));
        }
        let mut attempts = 0;
        let disk = loop {
            let soon = Deadline::after(Duration::from_millis(9750));
            match setup.try_create(soon, &new_disk("pvc-1")).await {
                Ok(disk) => break disk.id,
                Err(error) => assert_not_final(&error),
            }
            attempts += 1;
            assert!(attempts < if deleted { 6 } else { 80 });
            sleep(1).await;
        };
        assert_eq!(setup.only_disk(), disk);
    }
}

#[tokio::test(start_paused = true)]
async fn one_stale_read_does_not_prove_absent_a_disk_created_a_minute_ago() {
    let setup = Setup::new(&["--stale=2s"]);
    let late = setup.try_create(seconds(1), &new_disk("pvc-1")).await;
    assert_not_final(&late.unwrap_err());
    let created = setup.only_disk();
    sleep(60).await;
    // Reads briefly return the state before the creation.
    setup.configure(&json!({"stale": {"lag": "70s"}}));
    let new = new_disk("pvc-1");
    let (found, ()) = tokio::join!(setup.try_create(minutes(1), &new), async {
        sleep(2).await;
        setup.configure(&json!({"stale": {"lag": "0s"}}));
    });
    assert_eq!((found.unwrap().id, setup.only_disk()), (created.clone(), created));
}

#[tokio::test(start_paused = true)]
async fn a_repeated_create_with_reordered_or_fewer_zones_and_categories_returns_the_same_disk() {
    let setup = Setup::new(&["--out-of-stock=*/cloud_ssd"]);
    let both = ssd_or_essd("pvc-1");
    let disk = setup.create(&both).await;
    setup.configure(&json!({"out_of_stock": []}));
    let reordered = NewDisk {
        zones: vec![zone("b").into(), zone("a").into()],
        ..both
    };
    for new in [reordered, new_disk("pvc-1")] {
        let found = setup.restarted().create(&new).await;
        assert_eq!(found.id, disk.id);
        assert_eq!(setup.only_disk(), disk.id, "{new:?}");
    }
}
