//! Orders that the cloud refuses for a while: repeated with growing pauses, also across calls.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use diskplugin::disk::FailureKind;
use diskplugin::model::{Category, DiskId};

use crate::verbs::kit::modify::{category_change, full_change};
use crate::verbs::kit::{Setup, gib, minutes, new_disk, node_one, seconds, text};

const MINUTE: Duration = Duration::from_secs(60);

/// How often a sidecar repeats a failed call.
const RETRY: Duration = Duration::from_millis(100);

/// Disks in use whose category is being changed for hours.
async fn changing_disks(setup: &Setup, count: usize) -> Vec<DiskId> {
    setup.configure(&json!({"delays": {"modify": "3h"}}));
    let mut disks = Vec::new();
    for n in 0..count {
        let disk = setup.disk(&format!("pvc-{n}")).await;
        setup.attach(&disk, &node_one()).await;
        let change = category_change(Category::CloudAuto);
        let modifier = &setup.disks.modifier;
        modifier.modify(seconds(1), &disk, &change).await.unwrap_err();
        disks.push(disk);
    }
    setup.cloud.clear_calls();
    disks
}

#[tokio::test(start_paused = true)]
async fn an_expansion_during_a_category_change_costs_at_most_ten_orders_a_minute() {
    let setup = Setup::without_canary(&[]);
    let mut claims = JoinSet::new();
    for disk in changing_disks(&setup, 10).await {
        let services = Arc::clone(&setup.disks);
        claims.spawn(async move {
            let (start, mut longest) = (Instant::now(), Duration::ZERO);
            while start.elapsed() < MINUTE {
                let called = Instant::now();
                let refused = services.resizer.resize(minutes(2), &disk, gib(30)).await;
                let refused = refused.unwrap_err();
                longest = longest.max(called.elapsed());
                assert_eq!(refused.failure_kind(), FailureKind::Aborted, "{refused}");
                assert!(text(&refused).contains("RequestId"), "{}", text(&refused));
                tokio::time::sleep(RETRY).await;
            }
            longest
        });
    }
    // No call occupies a worker of the sidecar until its deadline.
    for longest in claims.join_all().await {
        assert!(longest <= Duration::from_secs(25), "{longest:?}");
    }
    let orders = setup.calls("ResizeDisk");
    assert!((60..=110).contains(&orders), "{orders}");
}

#[tokio::test(start_paused = true)]
async fn an_expansion_succeeds_soon_after_the_category_change() {
    let setup = Setup::without_canary(&[]);
    setup.configure(&json!({"delays": {"modify": "5m"}}));
    let disk = setup.disk("pvc-1").await;
    setup.attach(&disk, &node_one()).await;
    let change = category_change(Category::CloudAuto);
    let modifier = &setup.disks.modifier;
    modifier.modify(seconds(1), &disk, &change).await.unwrap_err();
    let start = Instant::now();
    while let Err(error) = setup.disks.resizer.resize(minutes(2), &disk, gib(30)).await {
        assert_eq!(error.failure_kind(), FailureKind::Aborted);
        assert!(start.elapsed() < Duration::from_secs(315), "{error}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_is_sent_at_most_ten_times_a_minute_and_its_refusal_is_repeated() {
    let setup = Setup::without_canary(&[]);
    let disk = setup.disk("pvc-1").await;
    let code = json!({"code": {"status": 403, "code": "OperationDenied.NoStock"}});
    setup.faults("ModifyDiskSpec", 1000, &code);
    let change = category_change(Category::CloudAuto);
    let start = Instant::now();
    while start.elapsed() < MINUTE {
        let refused = setup.disks.modifier.modify(minutes(2), &disk, &change);
        let refused = refused.await.unwrap_err();
        assert_eq!(refused.failure_kind(), FailureKind::ResourceExhausted);
        assert!(text(&refused).contains("RequestId"), "{}", text(&refused));
        tokio::time::sleep(RETRY).await;
    }
    let orders = setup.calls("ModifyDiskSpec");
    assert!((6..=10).contains(&orders), "{orders}");
    // Another change of the disk is sent without a pause.
    setup.configure(&json!({"faults": []}));
    let other = full_change();
    let _ = setup.disks.modifier.modify(seconds(1), &disk, &other).await;
    assert!(setup.calls("ModifyDiskSpec") > orders);
}

#[tokio::test(start_paused = true)]
async fn a_creation_refused_because_of_the_account_costs_at_most_ten_orders_a_minute() {
    for code in ["InvalidAccountStatus.NotEnoughBalance", "QuotaExceed.DiskCapacity"] {
        let setup = Setup::without_canary(&[]);
        // Established, so that a refusal can be final.
        let kind = json!({"code": {"status": 403, "code": code}});
        setup.faults("CreateDisk", 1000, &kind);
        let start = Instant::now();
        while start.elapsed() < MINUTE {
            let new = new_disk("pvc-1");
            let refused = setup.disks.provisioner.create(minutes(2), &new).await;
            assert!(text(&refused.unwrap_err()).contains(code));
            tokio::time::sleep(RETRY).await;
        }
        let orders = setup.calls("CreateDisk");
        assert!((2..=10).contains(&orders), "{code}: {orders}");
        setup.configure(&json!({"faults": []}));
        let start = Instant::now();
        while let Err(error) = setup.disks.provisioner.create(minutes(2), &new_disk("pvc-1")).await {
            assert!(start.elapsed() < Duration::from_secs(31), "{error}");
            tokio::time::sleep(RETRY).await;
        }
        assert_eq!(setup.rows().len(), 1);
    }
}
