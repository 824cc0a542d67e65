//! Creating: when it answers, what it chooses, what it refuses.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use diskplugin::disk::{Error, FailureKind, NewDisk};
use diskplugin::model::Category;

use crate::kit::{POLL_TOLERANCE, Setup, available, between, gib, minutes, seconds, text, new_disk, zone};

#[tokio::test(start_paused = true)]
async fn the_answer_comes_when_the_disk_is_available_and_costs_few_looks() {
    let setup = Setup::long_running(&["--create-delay=3s"]).await;
    let begun = Instant::now();
    let disk = setup.create(&new_disk("pvc-1")).await;
    assert!(begun.elapsed() <= Duration::from_secs(3) + POLL_TOLERANCE);
    assert_eq!(setup.row(&disk.id)["status"], "Available");
    // After the one listing of a process.
    assert_eq!(setup.cloud.calls()[1].action, "CreateDisk");
    assert_eq!(setup.calls("CreateDisk"), 1);
    assert!(setup.calls("DescribeDisks") <= 5);
}

#[tokio::test(start_paused = true)]
async fn the_same_name_is_the_same_disk_now_and_after_a_restart() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        let setup = Setup::new(&["--create-delay=1s"]);
        let first = setup.create(&new).await;
        let second = setup.create(&new).await;
        let third = setup
            .restarted()
            .provisioner
            .create(minutes(1), &new)
            .await
            .unwrap();
        assert_eq!([&second.id, &third.id], [&first.id; 2]);
        assert_eq!(setup.only_disk(), first.id);
    }
}

#[tokio::test(start_paused = true)]
async fn another_cluster_may_use_the_same_name_for_its_own_disk() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        let setup = Setup::new(&[]);
        let ours = setup.create(&new).await;
        let theirs = setup
            .other_cluster()
            .provisioner
            .create(minutes(1), &new)
            .await
            .unwrap();
        assert_ne!(ours.id, theirs.id);
    }
}

/// A request for the name that differs from the first, and how the difference reads.
fn others(first: &NewDisk) -> Vec<(NewDisk, &'static str)> {
    let base = first.clone();
    vec![
        (
            NewDisk {
                size: gib(40),
                ..base.clone()
            },
            "size is 20 GiB, wanted required_bytes 42949672960",
        ),
        (
            NewDisk {
                size: between(1, 19),
                categories: vec![Category::CloudAuto],
                ..base.clone()
            },
            "size is 20 GiB, wanted required_bytes 1073741824 with limit_bytes 20401094656",
        ),
        (
            NewDisk {
                categories: vec![Category::CloudSsd],
                ..base.clone()
            },
            "wanted cloud_ssd",
        ),
        (
            NewDisk {
                places: vec![zone("b").into()],
                ..base.clone()
            },
            "zone is cn-beijing-a, wanted cn-beijing-b",
        ),
        (
            NewDisk {
                places: vec![zone("c").into(), zone("b").into()],
                ..base.clone()
            },
            "zone is cn-beijing-a, wanted cn-beijing-c or cn-beijing-b",
        ),
        (
            NewDisk {
                encrypted: true,
                ..base
            },
            "encrypted is false, wanted true",
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn another_request_under_a_used_name_is_refused_with_both_sides_and_buys_nothing() {
    for first in [new_disk("pvc-1"), available("pvc-1")] {
        for (other, difference) in others(&first) {
            let setup = Setup::new(&["--create-delay=1s"]);
            let disk = setup.create(&first).await;
            let refused = setup
                .restarted()
                .provisioner
                .create(minutes(1), &other)
                .await
                .unwrap_err();
            assert!(
                matches!(refused, Error::Exists { .. }),
                "{other:?}: {refused:?}"
            );
            let text = text(&refused);
            assert!(
                text.contains(disk.id.as_str()) && text.contains(difference),
                "{text}"
            );
            assert_eq!(setup.only_disk(), disk.id);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_source_under_a_used_name_is_refused_with_both_sides() {
    let setup = Setup::new(&[]);
    let source = setup.disk("source").await;
    let snapshot = setup.snapshot("snap", &source).await;
    let disk = setup.disk("pvc-1").await;
    let other = NewDisk {
        snapshot: Some(snapshot.clone()),
        ..new_disk("pvc-1")
    };
    let refused = text(
        &setup
            .disks
            .provisioner
            .create(minutes(1), &other)
            .await
            .unwrap_err(),
    );
    assert!(refused.contains(disk.as_str()), "{refused}");
    assert!(
        refused.contains(&format!("source snapshot is none, wanted {snapshot}")),
        "{refused}"
    );
    assert_eq!(setup.rows().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_asks_for_less_gets_the_disk_that_is_there() {
    let setup = Setup::new(&[]);
    let first = NewDisk {
        size: gib(40),
        ..new_disk("pvc-1")
    };
    let disk = setup.create(&first).await;
    let less = setup.create(&new_disk("pvc-1")).await;
    assert_eq!((less.id, setup.rows().len()), (disk.id, 1));
}

#[tokio::test(start_paused = true)]
async fn available_goes_through_the_categories_in_order_until_one_is_in_stock() {
    let sold = "--out-of-stock=*/cloud_efficiency,*/cloud_ssd,*/cloud";
    let setup = Setup::new(&[sold]);
    // The stock that could be asked for is out of date, so that each is tried.
    setup.configure(&json!({"rules": {"hide_stockouts": true}}));
    let disk = setup.create(&available("pvc-1")).await;
    assert_eq!(disk.category, Category::CloudEssd);
    let calls = setup.cloud.calls();
    let tried = calls.iter().filter(|call| call.action == "CreateDisk");
    let tried: Vec<_> = tried
        .map(|call| call.params["DiskCategory"].as_str())
        .collect();
    assert_eq!(
        tried,
        ["cloud_efficiency", "cloud_ssd", "cloud", "cloud_essd"]
    );
}

#[tokio::test(start_paused = true)]
async fn the_next_zone_is_taken_when_the_first_has_nothing_of_what_is_wanted() {
    let setup = Setup::new(&["--out-of-stock=cn-beijing-b/*"]);
    let new = NewDisk {
        places: vec![zone("b").into(), zone("c").into()],
        ..available("pvc-1")
    };
    let disk = setup.create(&new).await;
    assert_eq!(disk.zone, Some(zone("c")));
    assert_eq!(disk.category, Category::CloudEfficiency);
}

#[tokio::test(start_paused = true)]
async fn when_nothing_is_in_stock_each_pair_is_named_with_its_reason() {
    let setup = Setup::new(&["--out-of-stock=*/cloud_ssd,cn-beijing-b/*,cn-beijing-a/cloud_essd"]);
    let new = NewDisk {
        categories: vec![Category::CloudSsd, Category::CloudEssd],
        places: vec![zone("a").into(), zone("b").into()],
        ..new_disk("pvc-1")
    };
    let refused = setup
        .disks
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::OutOfStock { .. }), "{refused:?}");
    assert_eq!(refused.failure_kind(), FailureKind::ResourceExhausted);
    for pair in [
        "ssd in cn-beijing-a",
        "essd in cn-beijing-a",
        "ssd in cn-beijing-b",
    ] {
        assert!(
            text(&refused).contains(&format!("cloud_{pair}: CreateDisk failed with ")),
            "{refused}"
        );
    }
    assert!(text(&refused).contains("RequestId"), "{refused}");
    assert!(setup.rows().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_category_whose_quota_is_used_up_is_passed_over_and_an_empty_account_is_not() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"limits": {"zone_category_gib": 30}}));
    let first = setup.create(&available("pvc-1")).await;
    let second = setup.create(&available("pvc-2")).await;
    assert_ne!(first.category, second.category);
    setup.configure(&json!({"limits": {"no_balance": true}}));
    setup.cloud.clear_calls();
    let refused = setup
        .disks
        .provisioner
        .create(minutes(1), &available("pvc-3"))
        .await
        .unwrap_err();
    assert_eq!(
        (refused.failure_kind(), setup.calls("CreateDisk")),
        (FailureKind::FailedPrecondition, 1)
    );
    assert!(
        text(&refused).contains("InvalidAccountStatus.NotEnoughBalance"),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn each_category_gets_the_smallest_size_that_it_sells_and_a_limit_below_it_passes_it_over() {
    let setup = Setup::new(&[]);
    let new = NewDisk {
        size: between(1, 8),
        ..available("pvc-1")
    };
    let disk = setup.create(&new).await;
    // The first that sells less than 20 GiB.
    assert_eq!((disk.category, disk.size.0), (Category::Cloud, 5));
    let none = NewDisk {
        size: between(1, 8),
        ..new_disk("pvc-2")
    };
    let refused = setup
        .disks
        .provisioner
        .create(minutes(1), &none)
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::OutOfRange { .. }), "{refused:?}");
    assert_eq!(setup.rows().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_shorter_than_the_creation_is_told_and_the_repeat_returns_the_same_disk() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        let setup = Setup::new(&["--create-delay=30s"]);
        let begun = Instant::now();
        let late = setup
            .disks
            .provisioner
            .create(seconds(10), &new)
            .await
            .unwrap_err();
        assert_eq!(begun.elapsed(), Duration::from_secs(10));
        assert_eq!(late.failure_kind(), FailureKind::DeadlineExceeded);
        let made = setup.only_disk();
        assert!(
            text(&late).contains(&format!("disk {made} is Creating")),
            "{}",
            text(&late)
        );
        let disk = setup
            .restarted()
            .provisioner
            .create(minutes(1), &new)
            .await
            .unwrap();
        assert_eq!((&disk.id, setup.only_disk()), (&made, made.clone()));
        assert_eq!(setup.row(&made)["status"], "Available");
    }
}
