//! Stockouts: detected once for many creations, and remembered for a limited time.

use crate::verbs::kit::*;

const OUT_OF_STOCK: &str = "--out-of-stock=*/cloud_efficiency,*/cloud_ssd,*/cloud";

/// Categories of the CreateDisk calls.
fn attempted_categories(setup: &Setup) -> Vec<String> {
    let calls = setup.cloud.calls();
    let creates = calls.iter().filter(|call| call.action == "CreateDisk");
    creates.map(|call| call.params["DiskCategory"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_stock_is_not_queried_before_the_first_rejection() {
    let setup = Setup::new(&[]);
    for n in 0..3 {
        let new = available(&format!("pvc-{n}"));
        setup.create(&new).await;
    }
    assert_eq!(setup.calls("DescribeAvailableResource"), 0);
    assert_eq!(setup.calls("CreateDisk"), 3);
}

#[tokio::test(start_paused = true)]
async fn one_stock_query_after_a_rejection_avoids_further_rejections() {
    let setup = Setup::new(&[OUT_OF_STOCK]);
    for n in 0..5 {
        let new = available(&format!("pvc-{n}"));
        let disk = setup.create(&new).await;
        assert_eq!(disk.category, Category::CloudEssd);
    }
    assert_eq!(attempted_categories(&setup)[..2], ["cloud_efficiency", "cloud_essd"]);
    assert_eq!(setup.calls("CreateDisk"), 6);
    assert_eq!(setup.calls("DescribeAvailableResource"), 1);
}

#[tokio::test(start_paused = true)]
async fn without_stock_data_each_category_is_rejected_once_and_remembered() {
    let setup = Setup::new(&[OUT_OF_STOCK]);
    setup.configure(&json!({"denied": ["DescribeAvailableResource"]}));
    setup.faults("DescribeAvailableResource", 1000, &error_code(403, "Forbidden.RAM"));
    for n in 0..5 {
        let new = available(&format!("pvc-{n}"));
        let disk = setup.create(&new).await;
        assert_eq!(disk.category, Category::CloudEssd);
    }
    assert_eq!(setup.calls("CreateDisk"), 3 + 5);
    // The failed query is remembered too.
    assert_eq!(setup.calls("DescribeAvailableResource"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stockout_is_forgotten_after_a_few_minutes() {
    let setup = Setup::new(&[OUT_OF_STOCK]);
    setup.create(&available("pvc-1")).await;
    setup.configure(&json!({"out_of_stock": []}));
    sleep(200).await;
    let disk = setup.create(&available("pvc-2")).await;
    assert_eq!(disk.category, Category::CloudEfficiency);
}

#[tokio::test(start_paused = true)]
async fn another_final_rejection_ends_a_stockout_for_all_claims() {
    let setup = Setup::new(&["--out-of-stock=*/*"]);
    let failure = async |name: &str| {
        let new = new_disk(name);
        let created = setup.try_create(minutes(1), &new).await;
        created.unwrap_err().failure_kind()
    };
    assert_eq!(failure("pvc-1").await, FailureKind::ResourceExhausted);
    setup.configure(&json!({"out_of_stock": [], "denied": ["CreateDisk"]}));
    assert_eq!(failure("pvc-2").await, FailureKind::ResourceExhausted);
    sleep(30).await;
    for name in ["pvc-1", "pvc-2", "pvc-3"] {
        assert_eq!(failure(name).await, FailureKind::PermissionDenied);
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeat_with_everything_out_of_stock_costs_no_request_and_names_every_pair() {
    let setup = Setup::new(&["--out-of-stock=*/*"]);
    let new = NewDisk {
        zones: vec![zone("a").into(), zone("b").into()],
        ..available("pvc-1")
    };
    let rejected = setup.try_create(minutes(1), &new).await.unwrap_err();
    assert_eq!(rejected.failure_kind(), FailureKind::ResourceExhausted);
    setup.cloud.clear_calls();
    for _ in 0..3 {
        let rejected = setup.try_create(minutes(1), &new).await.unwrap_err();
        let text = text(&rejected);
        for category in Category::CREATABLE {
            for zone in ["a", "b"] {
                let pair = format!("{category} in cn-beijing-{zone}: not attempted by this call: ");
                assert!(text.contains(&pair), "{pair}: {text}");
            }
        }
        let parts = [
            "CreateDisk failed with ",
            "RequestId",
            " s ago; the next attempt is due in ",
        ];
        assert_names(&rejected, &parts);
    }
    assert_eq!(attempted_categories(&setup), [""; 0]);
    setup.configure(&json!({"out_of_stock": []}));
    // Until the next probe.
    sleep(30).await;
    let disk = setup.create(&new).await;
    assert_eq!(setup.only_disk(), disk.id);
}

#[tokio::test(start_paused = true)]
async fn stock_replenished_for_one_pair_is_used_within_90_seconds() {
    let setup = Setup::new(&["--out-of-stock=*/*"]);
    let new = available("pvc-1");
    setup.try_create(minutes(1), &new).await.unwrap_err();
    setup.configure(&json!({"out_of_stock": [
        "*/cloud_efficiency", "*/cloud_ssd", "*/cloud", "*/cloud_essd", "*/cloud_essd_entry"
    ]}));
    let mut waited = 0;
    let disk = loop {
        match setup.try_create(minutes(1), &new).await {
            Ok(disk) => break disk,
            Err(error) => assert!(matches!(error, Error::OutOfStock { .. }), "{error}"),
        }
        sleep(10).await;
        waited += 10;
        assert!(waited <= 90);
    };
    assert_eq!(disk.category, Category::CloudAuto);
    assert_eq!(setup.only_disk(), disk.id);
}

#[tokio::test(start_paused = true)]
async fn a_quota_exceeded_by_a_large_disk_does_not_block_a_small_one() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"limits": {"zone_category_gib": 100}}));
    let large = sized("large", gib(500));
    let rejected = setup.try_create(minutes(1), &large).await.unwrap_err();
    assert_error(&rejected, FailureKind::ResourceExhausted, &["QuotaExceed.DiskCapacity"]);
    let small = setup.create(&new_disk("small")).await;
    assert_eq!(small.category, Category::CloudEssd);
}

#[tokio::test(start_paused = true)]
async fn a_performance_level_unavailable_in_the_zone_is_skipped() {
    let setup = Setup::new(&[]);
    setup.reject("CreateDisk", 400, "InvalidPerformanceLevel.ValueNotSupported");
    let new = NewDisk {
        size: gib(500),
        levels: vec![PerformanceLevel::Pl0, PerformanceLevel::Pl1],
        ..new_disk("pvc-1")
    };
    let disk = setup.create(&new).await;
    assert_eq!(disk.performance_level.as_deref(), Some("PL1"));
}

#[tokio::test(start_paused = true)]
async fn a_size_that_the_cloud_rejects_everywhere_is_out_of_range() {
    let setup = Setup::new(&[]);
    setup.faults(
        "CreateDisk",
        10,
        &error_code(403, "InvalidDataDiskSize.ValueNotSupported"),
    );
    let rejected = setup.try_create(minutes(1), &available("pvc-1")).await.unwrap_err();
    assert_eq!(rejected.failure_kind(), FailureKind::OutOfRange, "{rejected}");
    assert!(setup.rows().is_empty());
}

#[tokio::test(start_paused = true)]
async fn capacity_considers_stockouts_that_only_creations_revealed() {
    let setup = Setup::new(&["--out-of-stock=*/cloud_essd"]);
    setup.configure(&json!({"rules": {"hide_stockouts": true}}));
    let new = new_disk("pvc-1");
    let capacity = async || setup.disks.provisioner.capacity(minutes(1), &new).await.unwrap();
    assert!(capacity().await.is_some());
    setup.try_create(minutes(1), &new).await.unwrap_err();
    assert_eq!(capacity().await, None);
}

#[tokio::test(start_paused = true)]
async fn attach_limits_of_the_types_of_instances_cost_three_calls() {
    let setup = Setup::new(&["--disk-quantity=9", "--out-of-stock=*/cloud_essd"]);
    let (catalog, node) = (&setup.disks.instance_types, BTreeSet::from([node_one()]));
    let names = catalog.types_of_instances(minutes(1), &node).await.0;
    let names = names.into_values().collect();
    let types = catalog.attach_limits(minutes(1), &names).await.0;
    assert_eq!(types.0.len(), 1, "{types:?}");
    let limits = types.0.values().next().unwrap();
    assert_eq!(limits.disk_quantity, 9);
    // A category that is out of stock is still supported.
    assert!(limits.categories.contains(&Category::CloudEssd), "{types:?}");
    for action in [
        "DescribeInstances",
        "DescribeInstanceTypes",
        "DescribeAvailableResource",
    ] {
        assert_eq!(setup.calls(action), 1, "{action}");
    }
}
