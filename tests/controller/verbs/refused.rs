//! Orders that the cloud refuses for a while: repeated with growing pauses, also across calls.

use crate::verbs::kit::*;

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
                let refused = services.resizer.resize(minutes(2), &disk, gib(30)).await.unwrap_err();
                longest = longest.max(called.elapsed());
                assert_error(&refused, FailureKind::Aborted, &["RequestId"]);
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
    let disk = setup.attached("pvc-1").await;
    let change = category_change(Category::CloudAuto);
    let modifier = &setup.disks.modifier;
    modifier.modify(seconds(1), &disk, &change).await.unwrap_err();
    let start = Instant::now();
    while let Err(error) = setup.try_resize(minutes(2), &disk, gib(30)).await {
        assert_eq!(error.failure_kind(), FailureKind::Aborted);
        assert!(start.elapsed() < Duration::from_secs(315), "{error}");
        sleep(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_is_sent_at_most_ten_times_a_minute_and_its_refusal_is_repeated() {
    let setup = Setup::without_canary(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.faults("ModifyDiskSpec", 1000, &error_code(403, "OperationDenied.NoStock"));
    let change = category_change(Category::CloudAuto);
    let start = Instant::now();
    while start.elapsed() < MINUTE {
        let refused = setup.try_modify(minutes(2), &disk, &change).await.unwrap_err();
        assert_error(&refused, FailureKind::ResourceExhausted, &["RequestId"]);
        tokio::time::sleep(RETRY).await;
    }
    let orders = setup.calls("ModifyDiskSpec");
    assert!((6..=10).contains(&orders), "{orders}");
    // Another change of the disk is sent without a pause.
    setup.clear_faults();
    let other = full_change();
    let _ = setup.try_modify(seconds(1), &disk, &other).await;
    assert!(setup.calls("ModifyDiskSpec") > orders);
}

#[tokio::test(start_paused = true)]
async fn a_refused_snapshot_costs_at_most_ten_orders_a_minute() {
    let setup = Setup::without_canary(&[]);
    let source = setup.attached("source").await;
    setup.faults("CreateSnapshot", 1000, &error_code(403, "QuotaExceed.Snapshot"));
    let (mut snapshots, mut clones) = (0, 0);
    for orders in [&mut snapshots, &mut clones] {
        let before = setup.calls("CreateSnapshot");
        let is_clone = before > 0;
        let start = Instant::now();
        while start.elapsed() < MINUTE {
            let refused = if is_clone {
                setup.try_clone(minutes(2), &new_disk("pvc-1"), &source).await.err()
            } else {
                setup
                    .try_snapshot(minutes(2), &new_snapshot("snap-1", &source))
                    .await
                    .err()
            };
            assert!(text(&refused.unwrap()).contains("QuotaExceed.Snapshot"));
            tokio::time::sleep(RETRY).await;
        }
        *orders = setup.calls("CreateSnapshot") - before;
    }
    assert!(
        (2..=10).contains(&snapshots) && (2..=10).contains(&clones),
        "{snapshots} {clones}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_creation_refused_because_of_the_account_costs_at_most_ten_orders_a_minute() {
    for code in ["InvalidAccountStatus.NotEnoughBalance", "QuotaExceed.DiskCapacity"] {
        let setup = Setup::without_canary(&[]);
        // Established, so that a refusal can be final.
        setup.faults("CreateDisk", 1000, &error_code(403, code));
        let start = Instant::now();
        while start.elapsed() < MINUTE {
            let new = new_disk("pvc-1");
            let refused = setup.try_create(minutes(2), &new).await;
            assert!(text(&refused.unwrap_err()).contains(code));
            tokio::time::sleep(RETRY).await;
        }
        let orders = setup.calls("CreateDisk");
        assert!((2..=10).contains(&orders), "{code}: {orders}");
        setup.clear_faults();
        let start = Instant::now();
        while let Err(error) = setup.try_create(minutes(2), &new_disk("pvc-1")).await {
            assert!(start.elapsed() < Duration::from_secs(31), "{error}");
            tokio::time::sleep(RETRY).await;
        }
        assert_eq!(setup.rows().len(), 1);
    }
}
