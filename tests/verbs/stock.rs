//! What is sold out is found out once for many creations, and believed for a while.

use std::time::Duration;

use serde_json::json;

use diskplugin::disk::{Error, FailureKind, NewDisk};
use diskplugin::model::{Category, PerformanceLevel};

use crate::kit::{Setup, available, gib, minutes, new_disk, text, zone};

const SOLD: &str = "--out-of-stock=*/cloud_efficiency,*/cloud_ssd,*/cloud";

fn tried(setup: &Setup) -> Vec<String> {
    let calls = setup.cloud.calls();
    let tried = calls.iter().filter(|call| call.action == "CreateDisk");
    tried
        .map(|call| call.params["DiskCategory"].clone())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_happy_path_does_not_look_at_the_stock() {
    let setup = Setup::new(&[]);
    for n in 0..3 {
        let new = available(&format!("pvc-{n}"));
        setup.create(&new).await;
    }
    assert_eq!(setup.calls("DescribeAvailableResource"), 0);
    assert_eq!(setup.calls("CreateDisk"), 3);
}

#[tokio::test(start_paused = true)]
async fn after_one_refusal_one_look_at_the_stock_spares_all_the_others() {
    let setup = Setup::new(&[SOLD]);
    for n in 0..5 {
        let new = available(&format!("pvc-{n}"));
        let disk = setup.create(&new).await;
        assert_eq!(disk.category, Category::CloudEssd);
    }
    assert_eq!(tried(&setup)[..2], ["cloud_efficiency", "cloud_essd"]);
    assert_eq!(setup.calls("CreateDisk"), 6);
    assert_eq!(setup.calls("DescribeAvailableResource"), 1);
}

#[tokio::test(start_paused = true)]
async fn without_the_stock_each_is_refused_once_and_then_remembered() {
    let setup = Setup::new(&[SOLD]);
    setup.configure(&json!({"denied": ["DescribeAvailableResource"]}));
    let denied = json!({"code": {"status": 403, "code": "Forbidden.RAM"}});
    setup.faults("DescribeAvailableResource", 1000, &denied);
    for n in 0..5 {
        let new = available(&format!("pvc-{n}"));
        let disk = setup.create(&new).await;
        assert_eq!(disk.category, Category::CloudEssd);
    }
    assert_eq!(setup.calls("CreateDisk"), 3 + 5);
    // Having got no answer is remembered as well.
    assert_eq!(setup.calls("DescribeAvailableResource"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_sold_out_is_first_again_after_a_few_minutes() {
    let setup = Setup::new(&[SOLD]);
    setup.create(&available("pvc-1")).await;
    setup.configure(&json!({"out_of_stock": []}));
    tokio::time::sleep(Duration::from_secs(200)).await;
    let disk = setup.create(&available("pvc-2")).await;
    assert_eq!(disk.category, Category::CloudEfficiency);
}

#[tokio::test(start_paused = true)]
async fn where_all_is_sold_out_a_repeat_costs_one_probe_and_still_names_every_pair() {
    let setup = Setup::new(&["--out-of-stock=*/*"]);
    let new = NewDisk {
        zones: vec![zone("a").into(), zone("b").into()],
        ..available("pvc-1")
    };
    let rejected = setup
        .disks
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap_err();
    assert_eq!(rejected.failure_kind(), FailureKind::ResourceExhausted);
    setup.cloud.clear_calls();
    for _ in 0..3 {
        let rejected = setup
            .disks
            .provisioner
            .create(minutes(1), &new)
            .await
            .unwrap_err();
        let text = text(&rejected);
        for category in Category::CREATABLE {
            for zone in ["a", "b"] {
                let pair = format!("{category} in cn-beijing-{zone}: ");
                assert!(text.contains(&pair), "{pair}: {text}");
            }
        }
    }
    // Each repeat may have to pass the token that the first one used up.
    assert!(setup.calls("CreateDisk") <= 6, "{:?}", tried(&setup));
    setup.configure(&json!({"out_of_stock": []}));
    let disk = setup.create(&new).await;
    assert_eq!(setup.only_disk(), disk.id);
}

#[tokio::test(start_paused = true)]
async fn stock_that_comes_back_in_one_pair_only_is_found_within_minutes() {
    let setup = Setup::new(&["--out-of-stock=*/*"]);
    let new = available("pvc-1");
    setup
        .disks
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap_err();
    setup.configure(&json!({"out_of_stock": [
        "*/cloud_efficiency", "*/cloud_ssd", "*/cloud", "*/cloud_essd", "*/cloud_essd_entry"
    ]}));
    let mut waited = 0;
    let disk = loop {
        match setup.disks.provisioner.create(minutes(1), &new).await {
            Ok(disk) => break disk,
            Err(error) => assert!(matches!(error, Error::OutOfStock { .. }), "{error}"),
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        waited += 10;
        assert!(waited <= 90);
    };
    assert_eq!(disk.category, Category::CloudAuto);
    assert_eq!(setup.only_disk(), disk.id);
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_a_large_disk_has_met_does_not_stand_in_the_way_of_a_small_one() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"limits": {"zone_category_gib": 100}}));
    let large = NewDisk {
        size: gib(500),
        ..new_disk("large")
    };
    let rejected = setup
        .disks
        .provisioner
        .create(minutes(1), &large)
        .await
        .unwrap_err();
    assert_eq!(rejected.failure_kind(), FailureKind::ResourceExhausted);
    assert!(
        text(&rejected).contains("QuotaExceed.DiskCapacity"),
        "{rejected}"
    );
    let small = setup
        .disks
        .provisioner
        .create(minutes(1), &new_disk("small"))
        .await;
    assert_eq!(small.unwrap().category, Category::CloudEssd);
}

#[tokio::test(start_paused = true)]
async fn a_level_that_a_zone_does_not_sell_is_passed_over() {
    let setup = Setup::new(&[]);
    let code =
        json!({"code": {"status": 400, "code": "InvalidPerformanceLevel.ValueNotSupported"}});
    setup.fault("CreateDisk", &code);
    let new = NewDisk {
        size: gib(500),
        levels: vec![PerformanceLevel::Pl0, PerformanceLevel::Pl1],
        ..new_disk("pvc-1")
    };
    let disk = setup.create(&new).await;
    assert_eq!(disk.performance_level.as_deref(), Some("PL1"));
}

#[tokio::test(start_paused = true)]
async fn a_size_that_the_cloud_sells_nowhere_is_out_of_range_though_the_table_has_it() {
    let setup = Setup::new(&[]);
    let code = json!({"code": {"status": 403, "code": "InvalidDataDiskSize.ValueNotSupported"}});
    setup.faults("CreateDisk", 10, &code);
    let rejected = setup
        .disks
        .provisioner
        .create(minutes(1), &available("pvc-1"))
        .await
        .unwrap_err();
    assert_eq!(
        rejected.failure_kind(),
        FailureKind::OutOfRange,
        "{rejected}"
    );
    assert!(setup.rows().is_empty());
}

#[tokio::test(start_paused = true)]
async fn capacity_is_the_largest_size_that_is_in_stock_and_none_where_it_is_sold_out() {
    let setup = Setup::new(&["--out-of-stock=cn-beijing-a/cloud_essd,cn-beijing-b/*"]);
    let at = |letter: &str, categories: &[Category]| NewDisk {
        zones: vec![zone(letter).into()],
        categories: categories.to_vec(),
        size: diskplugin::model::SizeRange::default(),
        ..new_disk("")
    };
    for (new, sizes) in [
        (at("a", &[Category::CloudEssd]), None),
        (
            at("a", &[Category::CloudEssd, Category::Cloud]),
            Some((5, 2000)),
        ),
        (at("b", &Category::CREATABLE), None),
        (
            at("c", &[Category::CloudSsd, Category::CloudAuto]),
            Some((1, 65536)),
        ),
    ] {
        let sizes_found = setup
            .disks
            .provisioner
            .capacity(minutes(1), &new)
            .await
            .unwrap();
        let found = sizes_found.map(|sizes| (sizes.start().0, sizes.end().0));
        assert_eq!(found, sizes, "{new:?}");
    }
    assert_eq!(setup.calls("DescribeAvailableResource"), 1);
    tokio::time::sleep(Duration::from_secs(61)).await;
    setup.configure(&json!({"out_of_stock": []}));
    let essd = at("a", &[Category::CloudEssd]);
    let back = setup
        .disks
        .provisioner
        .capacity(minutes(1), &essd)
        .await
        .unwrap();
    assert_eq!(back.map(|sizes| sizes.start().0), Some(20));
}

#[tokio::test(start_paused = true)]
async fn capacity_knows_what_creating_has_found_out_where_the_stock_lags() {
    let setup = Setup::new(&["--out-of-stock=*/cloud_essd"]);
    setup.configure(&json!({"rules": {"hide_stockouts": true}}));
    let new = new_disk("pvc-1");
    assert!(
        setup
            .disks
            .provisioner
            .capacity(minutes(1), &new)
            .await
            .unwrap()
            .is_some()
    );
    setup
        .disks
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap_err();
    assert_eq!(
        setup
            .disks
            .provisioner
            .capacity(minutes(1), &new)
            .await
            .unwrap(),
        None
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_types_of_the_regions_machines_take_is_told_in_three_calls() {
    let setup = Setup::new(&["--disk-quantity=9", "--out-of-stock=*/cloud_essd"]);
    let types = setup
        .disks
        .instance_types
        .region_attach_limits(minutes(1))
        .await
        .unwrap();
    assert_eq!(types.0.len(), 1, "{types:?}");
    let takes = types.0.values().next().unwrap();
    assert_eq!(takes.disk_quantity, 9);
    // Sold out is not the same as not taken.
    assert!(takes.categories.contains(&Category::CloudEssd), "{types:?}");
    for action in [
        "DescribeInstances",
        "DescribeInstanceTypes",
        "DescribeAvailableResource",
    ] {
        assert_eq!(setup.calls(action), 1, "{action}");
    }
}
