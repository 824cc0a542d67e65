//! Throttled windows and missing permissions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use diskplugin::disk::FailureKind;
use diskplugin::model::InstanceId;

use crate::kit::{Setup, minutes, new_disk, node_one, seconds, text};

/// How often the action was called in each minute of the clock.
fn by_minute(setup: &Setup, action: &str) -> BTreeMap<i64, u32> {
    let mut minutes = BTreeMap::new();
    for call in setup
        .cloud
        .calls()
        .iter()
        .filter(|call| call.action == action)
    {
        *minutes
            .entry(call.at.as_second().div_euclid(60))
            .or_default() += 1;
    }
    minutes
}

#[tokio::test(start_paused = true)]
async fn a_window_that_is_used_up_is_waited_out_without_a_storm() {
    let setup = Setup::with_retries(&["--attach-delay=90s", "--throttle=DescribeDisks=10"]);
    let disk = setup.disk("pvc-1").await;
    let node = node_one();
    let attached = setup.disks.attacher.attach(minutes(5), &disk, &node);
    assert!(attached.await.is_ok());
    // Ten that are let in, and then a probe at most every ten seconds.
    for (minute, calls) in by_minute(&setup, "DescribeDisks") {
        assert!(calls <= 18, "{calls} in minute {minute}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_looks_were_held_up_orders_are_looked_at_no_more_often_than_others() {
    let setup = Setup::with_retries(&["--attach-delay=2s"]);
    for (limit, wanted) in [(None, Some(8)), (Some(3), None), (None, Some(5))] {
        setup.configure(&json!({"throttle": {"actions": {"DescribeDisks": limit}}}));
        let disk = setup.disk(&format!("pvc-{wanted:?}")).await;
        // The next minute of the clock.
        tokio::time::sleep(Duration::from_secs(60)).await;
        setup.cloud.clear_calls();
        setup.attach(&disk, &node_one()).await;
        let looks = setup.calls("DescribeDisks");
        assert!(
            wanted.is_none_or(|wanted| looks <= wanted),
            "{looks} looks, more than {wanted:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn many_waiters_in_a_used_up_window_probe_no_more_than_one() {
    let setup = Setup::with_nodes_and_retries(20, &["--attach-delay=30s"]);
    let mut attaching = JoinSet::new();
    for n in 0..20 {
        let disk = setup.disk(&format!("pvc-{n}")).await;
        let (verbs, node) = (Arc::clone(&setup.disks), format!("i-{n}"));
        let node: InstanceId = node.parse().unwrap();
        attaching.spawn(async move {
            verbs
                .attacher
                .attach(minutes(5), &disk, &node)
                .await
                .is_ok()
        });
    }
    setup.configure(&json!({"throttle": {"actions": {"DescribeDisks": 0}}}));
    tokio::time::sleep(Duration::from_secs(1)).await;
    setup.cloud.clear_calls();
    tokio::time::sleep(Duration::from_secs(120)).await;
    for (minute, calls) in by_minute(&setup, "DescribeDisks") {
        assert!(calls <= 12, "{calls} in minute {minute}");
    }
    setup.configure(&json!({"throttle": {"actions": null}}));
    assert!(attaching.join_all().await.into_iter().all(|ok| ok));
}

#[tokio::test(start_paused = true)]
async fn short_looks_during_a_closure_leave_no_calls_for_its_end() {
    let setup = Setup::with_nodes_and_retries(20, &["--attach-delay=90s"]);
    let mut attaching = JoinSet::new();
    let mut disks = Vec::new();
    for n in 0..20 {
        let disk = setup.disk(&format!("pvc-{n}")).await;
        disks.push(disk.clone());
        let (verbs, node) = (Arc::clone(&setup.disks), format!("i-{n}"));
        let node: InstanceId = node.parse().unwrap();
        attaching.spawn(async move {
            let attached = verbs.attacher.attach(minutes(5), &disk, &node);
            attached.await.is_ok()
        });
    }
    setup.configure(&json!({"throttle": {"actions": {"DescribeDisks": 10}}}));
    let start = Instant::now();
    let (mut looks, mut sent) = (JoinSet::new(), Vec::new());
    while start.elapsed() < Duration::from_secs(70) {
        let (verbs, disk) = (Arc::clone(&setup.disks), disks[sent.len() % 20].clone());
        // Nobody looks any more shortly before the window opens.
        if start.elapsed() < Duration::from_secs(56) {
            looks.spawn(async move { verbs.inventory.disk(seconds(5), &disk).await.is_ok() });
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
        sent.push(setup.calls("DescribeDisks"));
    }
    looks.join_all().await;
    // The calls of the looks are not queued until the window opens.
    let most = sent.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert!(
        most <= Some(2),
        "{most:?} within a quarter of a second: {sent:?}"
    );
    setup.configure(&json!({"throttle": {"actions": null}}));
    assert!(attaching.join_all().await.into_iter().all(|ok| ok));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_holds_in_a_throttled_window_and_the_error_says_so() {
    for patient in [true, false] {
        for (limit, step) in [
            ("AttachDisk=0", "attach disk"),
            ("DescribeDisks=3", "attach disk"),
        ] {
            let flags = ["--attach-delay=45s", &format!("--throttle={limit}")];
            let setup = if patient {
                Setup::with_retries(&flags)
            } else {
                Setup::new(&flags)
            };
            let disk = setup.disk("pvc-1").await;
            let begun = Instant::now();
            let late = setup
                .disks
                .attacher
                .attach(seconds(20), &disk, &node_one())
                .await
                .unwrap_err();
            assert!(begun.elapsed() <= Duration::from_secs(20));
            let text = text(&late);
            assert!(
                text.contains(step) && text.contains("Throttling"),
                "{patient} {limit}: {text}"
            );
            assert!(
                matches!(
                    late.failure_kind(),
                    FailureKind::Unavailable | FailureKind::DeadlineExceeded
                ),
                "{late:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_throttled_create_is_carried_through_the_minute_by_a_patient_client() {
    let setup = Setup::with_retries(&["--throttle=CreateDisk=1"]);
    setup.disk("pvc-1").await;
    let begun = Instant::now();
    setup.disk("pvc-2").await;
    // The next minute plus the pause that runs when it begins.
    assert!(
        begun.elapsed() <= Duration::from_secs(80),
        "{:?}",
        begun.elapsed()
    );
    for (minute, calls) in by_minute(&setup, "CreateDisk") {
        assert!(calls <= 12, "{calls} in minute {minute}");
    }
    assert_eq!(setup.rows().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_denied_is_told_at_once_with_what_to_check() {
    let setup = Setup::with_retries(&[]);
    let disk = setup.disk("pvc-1").await;
    let snapshot = crate::kit::new_snapshot("snap", &disk);
    setup.configure(
        &json!({"denied": ["CreateDisk", "AttachDisk", "DetachDisk", "DeleteDisk",
        "ResizeDisk", "CreateSnapshot"]}),
    );
    let begun = Instant::now();
    let verbs = &setup.disks;
    let errors = [
        verbs
            .provisioner
            .create(minutes(1), &new_disk("pvc-2"))
            .await
            .unwrap_err(),
        verbs
            .attacher
            .attach(minutes(1), &disk, &node_one())
            .await
            .unwrap_err(),
        verbs
            .attacher
            .detach(minutes(1), &disk, &node_one())
            .await
            .unwrap_err(),
        verbs
            .resizer
            .resize(minutes(1), &disk, crate::kit::gib(30))
            .await
            .unwrap_err(),
        verbs
            .snapshotter
            .create(minutes(1), &snapshot)
            .await
            .unwrap_err(),
        verbs
            .provisioner
            .delete(minutes(1), &disk)
            .await
            .unwrap_err(),
    ];
    for error in errors {
        assert_eq!(
            error.failure_kind(),
            FailureKind::PermissionDenied,
            "{error:?}"
        );
        assert!(error.failure().advice().contains("RAM policy"), "{error:?}");
        assert!(text(&error).contains("Forbidden.RAM"), "{error:?}");
    }
    // The first snapshot of an account: it is shown empty twice before the rejection is final.
    assert!(begun.elapsed() <= Duration::from_secs(25));
    assert_eq!(setup.row(&disk)["status"], "Available");
}

#[tokio::test(start_paused = true)]
async fn an_empty_response_is_not_taken_for_a_disk_that_does_not_exist() {
    let setup = Setup::new(&["--attach-delay=1s"]);
    let disk = setup.disk("pvc-1").await;
    setup.configure(&json!({"denied": ["DescribeDisks"]}));
    let unseen = setup
        .disks
        .attacher
        .attach(minutes(1), &disk, &node_one())
        .await
        .unwrap_err();
    assert_eq!(unseen.failure_kind(), FailureKind::DeadlineExceeded);
    assert!(text(&unseen).contains("an empty response"), "{unseen}");
    setup.configure(&json!({"denied": []}));
    assert!(
        setup
            .disks
            .attacher
            .attach(minutes(1), &disk, &node_one())
            .await
            .is_ok()
    );
}
