//! Creating disks: completion, choice of zone and category, and errors.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn create_returns_when_the_disk_is_available_and_polls_rarely() {
    let setup = Setup::new(&["--create-delay=3s"]);
    let begun = Instant::now();
    let disk = setup.create(&new_disk("pvc-1")).await;
    assert!(begun.elapsed() <= Duration::from_secs(3) + POLL_TOLERANCE);
    assert_eq!(setup.row(&disk.id)["status"], "Available");
    // The first call is the listing of a new process.
    assert_eq!(setup.cloud.calls()[1].action, "CreateDisk");
    assert_eq!(setup.calls("CreateDisk"), 1);
    assert!(setup.calls("DescribeDisks") <= 5);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_create_returns_the_same_disk_before_and_after_a_restart() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        let setup = Setup::new(&["--create-delay=1s"]);
        let first = setup.create(&new).await;
        let second = setup.create(&new).await;
        let third = setup.restarted().create(&new).await;
        assert_eq!([&second.id, &third.id], [&first.id; 2]);
        assert_eq!(setup.only_disk(), first.id);
    }
}

#[tokio::test(start_paused = true)]
async fn two_clusters_can_use_the_same_volume_name() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        let setup = Setup::new(&[]);
        let ours = setup.create(&new).await;
        let foreign = setup.other_cluster().create(&new).await;
        assert_ne!(ours.id, foreign.id);
    }
}

/// Requests with the same name that differ from the first, each with the expected difference in the error message.
fn incompatible_requests(first: &NewDisk) -> [(NewDisk, &'static str); 6] {
    let changed = |change: fn(&mut NewDisk)| {
        let mut other = first.clone();
        change(&mut other);
        other
    };
    let limited = |new: &mut NewDisk| {
        new.size = between(1, 19);
        new.categories = vec![Category::CloudAuto];
    };
    let two_zones = |new: &mut NewDisk| new.zones = vec![zone("c").into(), zone("b").into()];
    let size = "size is 20 GiB, wanted required_bytes 42949672960";
    let limit = "size is 20 GiB, wanted required_bytes 1073741824 with limit_bytes 20401094656";
    let zones = "zone is cn-beijing-a, wanted cn-beijing-c or cn-beijing-b";
    [
        (changed(|new| new.size = gib(40)), size),
        (changed(limited), limit),
        (
            changed(|new| new.categories = vec![Category::CloudSsd]),
            "wanted cloud_ssd",
        ),
        (
            changed(|new| new.zones = vec![zone("b").into()]),
            "zone is cn-beijing-a, wanted cn-beijing-b",
        ),
        (changed(two_zones), zones),
        (changed(|new| new.encrypted = true), "encrypted is false, wanted true"),
    ]
}

#[tokio::test(start_paused = true)]
async fn an_incompatible_request_fails_with_both_values_and_creates_no_disk() {
    for first in [new_disk("pvc-1"), available("pvc-1")] {
        for (other, difference) in incompatible_requests(&first) {
            let setup = Setup::new(&["--create-delay=1s"]);
            let disk = setup.create(&first).await;
            let rejected = setup.restarted().try_create(minutes(1), &other).await.unwrap_err();
            assert!(matches!(rejected, Error::AlreadyExists { .. }), "{rejected:?}");
            assert_names(&rejected, &[disk.id.as_str(), difference]);
            assert_eq!(setup.only_disk(), disk.id);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_with_another_source_fails_with_both_sources() {
    let setup = Setup::new(&[]);
    let source = setup.disk("source").await;
    let snapshot = setup.snapshot("snap", &source).await;
    let disk = setup.disk("pvc-1").await;
    let other = restored("pvc-1", &snapshot);
    let rejected = setup.try_create(minutes(1), &other).await.unwrap_err();
    let difference = format!("source snapshot is none, wanted {snapshot}");
    assert_names(&rejected, &[disk.as_str(), &difference]);
    assert_eq!(setup.rows().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_create_with_a_smaller_size_returns_the_existing_disk() {
    let setup = Setup::new(&[]);
    let first = sized("pvc-1", gib(40));
    let disk = setup.create(&first).await;
    let smaller = setup.create(&new_disk("pvc-1")).await;
    assert_eq!((smaller.id, setup.rows().len()), (disk.id, 1));
}

#[tokio::test(start_paused = true)]
async fn type_available_tries_categories_in_order_until_one_is_in_stock() {
    let out_of_stock = "--out-of-stock=*/cloud_efficiency,*/cloud_ssd,*/cloud";
    let setup = Setup::new(&[out_of_stock]);
    // DescribeAvailableResource still lists the categories, so that each is tried.
    setup.configure(&json!({"rules": {"hide_stockouts": true}}));
    let disk = setup.create(&available("pvc-1")).await;
    assert_eq!(disk.category, Category::CloudEssd);
    let calls = setup.cloud.calls();
    let tried = calls.iter().filter(|call| call.action == "CreateDisk");
    let tried: Vec<_> = tried.map(|call| call.params["DiskCategory"].as_str()).collect();
    assert_eq!(tried, ["cloud_efficiency", "cloud_ssd", "cloud", "cloud_essd"]);
}

#[tokio::test(start_paused = true)]
async fn create_uses_the_next_zone_when_the_first_is_out_of_stock() {
    let setup = Setup::new(&["--out-of-stock=cn-beijing-b/*"]);
    let new = NewDisk {
        zones: vec![zone("b").into(), zone("c").into()],
        ..available("pvc-1")
    };
    let disk = setup.create(&new).await;
    assert_eq!(disk.zone, Some(zone("c")));
    assert_eq!(disk.category, Category::CloudEfficiency);
}

#[tokio::test(start_paused = true)]
async fn out_of_stock_lists_each_zone_and_category_with_its_error() {
    let setup = Setup::new(&["--out-of-stock=*/cloud_ssd,cn-beijing-b/*,cn-beijing-a/cloud_essd"]);
    let rejected = setup.try_create(minutes(1), &ssd_or_essd("pvc-1")).await.unwrap_err();
    assert!(matches!(rejected, Error::OutOfStock { .. }), "{rejected:?}");
    assert_eq!(rejected.failure_kind(), FailureKind::ResourceExhausted);
    for pair in ["ssd in cn-beijing-a", "essd in cn-beijing-a", "ssd in cn-beijing-b"] {
        assert_names(&rejected, &[&format!("cloud_{pair}: CreateDisk failed with ")]);
    }
    assert_names(&rejected, &["RequestId", "zoneId"]);
    assert!(setup.rows().is_empty());
}

#[tokio::test(start_paused = true)]
async fn create_skips_a_category_without_quota_but_fails_without_balance() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"limits": {"zone_category_gib": 30}}));
    let first = setup.create(&available("pvc-1")).await;
    let second = setup.create(&available("pvc-2")).await;
    assert_ne!(first.category, second.category);
    setup.configure(&json!({"limits": {"no_balance": true}}));
    setup.cloud.clear_calls();
    let rejected = setup.try_create(minutes(1), &available("pvc-3")).await.unwrap_err();
    let parts = ["InvalidAccountStatus.NotEnoughBalance"];
    assert_error(&rejected, FailureKind::FailedPrecondition, &parts);
    assert_eq!(setup.calls("CreateDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn create_uses_the_minimum_size_of_a_category_and_skips_categories_above_the_limit() {
    let setup = Setup::new(&[]);
    let new = NewDisk {
        size: between(1, 8),
        ..available("pvc-1")
    };
    let disk = setup.create(&new).await;
    // The first category whose minimum is below 20 GiB.
    assert_eq!((disk.category, disk.size.0), (Category::Cloud, 5));
    let none = sized("pvc-2", between(1, 8));
    let rejected = setup.try_create(minutes(1), &none).await.unwrap_err();
    assert!(matches!(rejected, Error::OutOfRange { .. }), "{rejected:?}");
    assert_eq!(setup.rows().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn create_past_its_deadline_reports_the_disk_and_the_retry_returns_it() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        let setup = Setup::new(&["--create-delay=30s"]);
        let begun = Instant::now();
        let late = setup.try_create(seconds(10), &new).await.unwrap_err();
        assert_eq!(begun.elapsed(), Duration::from_secs(10));
        assert_eq!(late.failure_kind(), FailureKind::DeadlineExceeded);
        let created = setup.only_disk();
        assert_names(&late, &[&format!("disk {created} is Creating")]);
        let disk = setup.restarted().create(&new).await;
        assert_eq!((&disk.id, setup.only_disk()), (&created, created.clone()));
        assert_eq!(setup.row(&created)["status"], "Available");
    }
}
