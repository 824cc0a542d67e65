//! Operations that take longer than usual: calls return, retries resume them, and other disks are not delayed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use diskplugin::disk::{Error, FailureKind};
use diskplugin::model::{Category, Failure, InstanceId};

use crate::verbs::kit::create::sleep as pass;
use crate::verbs::kit::detach::attached;
use crate::verbs::kit::modify::category_change;
use crate::verbs::kit::{Setup, gib, minutes, new_disk, new_snapshot, node_one, node_two, seconds, text};

/// The timeout of csi-attacher.
pub(crate) const TIMEOUT: u64 = 150;

/// When the first call for an operation that does not end returns.
const OVERDUE: std::ops::RangeInclusive<Duration> = Duration::from_secs(20)..=Duration::from_secs(30);

/// A call for an operation that is overdue already.
const AT_ONCE: Duration = Duration::from_secs(1);

pub(crate) fn node(number: usize) -> InstanceId {
    format!("i-{number}").parse().unwrap()
}

pub(crate) async fn timed<T>(call: impl Future<Output = T>) -> (T, Duration) {
    let start = Instant::now();
    let outcome = call.await;
    (outcome, start.elapsed())
}

fn assert_overdue<T: std::fmt::Debug>(outcome: Result<T, Error>, parts: &[&str]) {
    let error = outcome.unwrap_err();
    let text = text(&error);
    assert_eq!(error.failure_kind(), FailureKind::DeadlineExceeded, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stuck_detach_returns_once_it_is_overdue_and_its_retries_at_once() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&["--detach-delay=1s", stale]);
        let disk = attached(&setup, "pvc-1").await;
        pass(10).await;
        setup.fault("DetachDisk", &json!("fails-later"));
        let detacher = &setup.disks.detacher;
        let parts = ["DETACH_STUCK", disk.as_str(), "i-one", "is Detaching", "25 s"];
        let (first, took) = timed(detacher.detach(seconds(TIMEOUT), &disk, &node_one())).await;
        assert_overdue(first, &parts);
        assert!(OVERDUE.contains(&took), "{took:?}");
        pass(5).await;
        for pause in [1, 30, 300] {
            let (again, took) = timed(detacher.detach(seconds(TIMEOUT), &disk, &node_one())).await;
            assert_overdue(again, &parts[..4]);
            assert!(took <= AT_ONCE, "{took:?}");
            pass(pause).await;
        }
        assert_eq!(setup.calls("DetachDisk"), 1, "the operation is resumed");
        setup.cloud.release(&disk);
        pass(5).await;
        let (done, took) = timed(detacher.detach(seconds(TIMEOUT), &disk, &node_one())).await;
        done.unwrap();
        assert!(took <= AT_ONCE, "{took:?}");
        assert_eq!(setup.calls("DetachDisk"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_attach_returns_once_it_is_overdue_and_a_retry_finds_it_attached() {
    let setup = Setup::new(&["--attach-delay=100s"]);
    let disk = setup.disk("pvc-1").await;
    let attacher = &setup.disks.attacher;
    let (first, took) = timed(attacher.attach(seconds(TIMEOUT), &disk, &node_one())).await;
    assert_overdue(first, &["attach disk", disk.as_str(), "i-one", "25 s", "is Attaching"]);
    assert!(OVERDUE.contains(&took), "{took:?}");
    pass(30).await;
    let (again, took) = timed(attacher.attach(seconds(TIMEOUT), &disk, &node_one())).await;
    assert_overdue(again, &["is Attaching"]);
    assert!(took <= AT_ONCE, "{took:?}");
    pass(60).await;
    let row = attacher.attach(seconds(TIMEOUT), &disk, &node_one()).await;
    assert!(row.unwrap().is_in_use_on(&node_one()));
    assert_eq!(setup.calls("AttachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_attach_that_the_cloud_aborts_after_the_call_returned_is_requested_again() {
    let setup = Setup::new(&["--attach-delay=60s"]);
    let disk = setup.disk("pvc-1").await;
    setup.fault("AttachDisk", &json!("fails-later"));
    let attacher = &setup.disks.attacher;
    attacher.attach(seconds(TIMEOUT), &disk, &node_one()).await.unwrap_err();
    pass(60).await;
    setup.configure(&json!({"delays": {"attach": "2s"}}));
    let row = attacher.attach(seconds(TIMEOUT), &disk, &node_one()).await;
    assert!(row.unwrap().is_in_use_on(&node_one()));
}

#[tokio::test(start_paused = true)]
async fn a_publish_waits_only_briefly_for_a_stuck_detach_from_another_node() {
    let setup = Setup::new(&["--detach-delay=1s"]);
    let disk = attached(&setup, "pvc-1").await;
    setup.fault("DetachDisk", &json!("fails-later"));
    let (attacher, detacher) = (&setup.disks.attacher, &setup.disks.detacher);
    let detached = detacher.detach(seconds(5), &disk, &node_one()).await;
    detached.unwrap_err();
    let parts = ["DETACH_STUCK", disk.as_str(), "i-two", "node i-one", "is Detaching"];
    let (first, took) = timed(attacher.attach(seconds(TIMEOUT), &disk, &node_two())).await;
    assert_overdue(first, &parts);
    assert!(took <= *OVERDUE.end(), "{took:?}");
    let (again, took) = timed(attacher.attach(seconds(TIMEOUT), &disk, &node_two())).await;
    assert_overdue(again, &parts);
    assert!(took <= AT_ONCE, "{took:?}");
    setup.cloud.release(&disk);
    pass(10).await;
    setup.attach(&disk, &node_two()).await;
}

#[tokio::test(start_paused = true)]
async fn disks_behind_an_overdue_detach_of_their_node_return_and_go_on_once_it_ends() {
    let setup = Setup::new(&["--detach-delay=2s"]);
    let mut disks = Vec::new();
    for number in 0..5 {
        disks.push(attached(&setup, &format!("pvc-{number}")).await);
    }
    pass(10).await;
    setup.fault("DetachDisk", &json!("fails-later"));
    let mut calls = JoinSet::new();
    for disk in disks.clone() {
        let services = Arc::clone(&setup.disks);
        calls.spawn(async move { timed(services.detacher.detach(seconds(TIMEOUT), &disk, &node_one())).await });
    }
    let mut stuck = 0;
    for (outcome, took) in calls.join_all().await {
        let error = outcome.unwrap_err();
        assert!(OVERDUE.contains(&took), "{took:?}: {}", text(&error));
        match error.failure() {
            Failure::DetachStuck => stuck += 1,
            Failure::AttachQueueTimeout => assert!(text(&error).contains("is being detached")),
            other => panic!("{other:?}: {}", text(&error)),
        }
    }
    assert_eq!(stuck, 1);
    for disk in &disks {
        let (_, took) = timed(setup.disks.detacher.detach(seconds(TIMEOUT), disk, &node_one())).await;
        assert!(took <= AT_ONCE, "{took:?}");
    }
    for disk in &disks {
        setup.cloud.release(disk);
    }
    pass(10).await;
    for disk in &disks {
        setup.detach(disk, &node_one()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn calls_wait_in_a_queue_that_progresses_for_longer_than_one_operation_may_take() {
    let setup = Setup::with_nodes(1, &["--attach-delay=8s"]);
    let mut calls = JoinSet::new();
    let start = Instant::now();
    for number in 0..16 {
        let disk = setup.disk(&format!("pvc-{number}")).await;
        let services = Arc::clone(&setup.disks);
        calls.spawn(async move { services.attacher.attach(minutes(5), &disk, &node(0)).await });
    }
    for outcome in calls.join_all().await {
        outcome.unwrap();
    }
    assert!(start.elapsed() >= Duration::from_secs(120));
}

#[tokio::test(start_paused = true)]
async fn a_slow_creation_returns_once_it_is_overdue_and_is_found_by_a_retry() {
    let setup = Setup::new(&["--create-delay=200s"]);
    let provisioner = &setup.disks.provisioner;
    let new = new_disk("pvc-1");
    let (first, took) = timed(provisioner.create(seconds(TIMEOUT), &new)).await;
    assert_overdue(first, &["TIMED_OUT", "is Creating"]);
    assert!(OVERDUE.contains(&took), "{took:?}");
    for _ in 0..3 {
        pass(20).await;
        let (again, took) = timed(provisioner.create(seconds(TIMEOUT), &new)).await;
        assert_overdue(again, &["is Creating"]);
        assert!(took <= AT_ONCE, "{took:?}");
    }
    pass(200).await;
    let row = provisioner.create(seconds(TIMEOUT), &new).await.unwrap();
    assert_eq!((row.id, setup.calls("CreateDisk")), (setup.only_disk(), 1));
}

#[tokio::test(start_paused = true)]
async fn a_slow_snapshot_returns_once_it_is_overdue_and_is_found_by_a_retry() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.configure(&json!({"delays": {"cut": "200s"}}));
    let snapshotter = &setup.disks.snapshotter;
    let new = new_snapshot("snapshot-1", &disk);
    let (first, took) = timed(snapshotter.create(seconds(TIMEOUT), &new)).await;
    assert_overdue(first, &[]);
    assert!(OVERDUE.contains(&took), "{took:?}");
    pass(20).await;
    let (again, took) = timed(snapshotter.create(seconds(TIMEOUT), &new)).await;
    assert_overdue(again, &[]);
    assert!(took <= AT_ONCE, "{took:?}");
    pass(200).await;
    snapshotter.create(seconds(TIMEOUT), &new).await.unwrap();
    assert_eq!(setup.calls("CreateSnapshot"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_expansion_returns_once_it_is_overdue_and_is_found_by_a_retry() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.configure(&json!({"delays": {"resize": "200s"}}));
    let resizer = &setup.disks.resizer;
    let (first, took) = timed(resizer.resize(seconds(TIMEOUT), &disk, gib(30))).await;
    assert_overdue(first, &["resize disk", disk.as_str()]);
    assert!(OVERDUE.contains(&took), "{took:?}");
    pass(200).await;
    let row = resizer.resize(seconds(TIMEOUT), &disk, gib(30)).await;
    assert_eq!(row.unwrap().size.0, 30);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_category_occupies_no_caller_while_its_task_runs() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.configure(&json!({"delays": {"modify": "1h"}}));
    let modifier = &setup.disks.modifier;
    let change = category_change(Category::CloudAuto);
    let (first, took) = timed(modifier.modify(seconds(TIMEOUT), &disk, &change)).await;
    assert_overdue(first, &["complete task", disk.as_str()]);
    assert!(OVERDUE.contains(&took), "{took:?}");
    let orders = setup.calls("ModifyDiskSpec");
    for _ in 0..3 {
        pass(300).await;
        let (again, took) = timed(modifier.modify(seconds(TIMEOUT), &disk, &change)).await;
        assert_overdue(again, &["complete task"]);
        assert!(took <= AT_ONCE, "{took:?}");
    }
    assert_eq!(setup.calls("ModifyDiskSpec"), orders);
    pass(3600).await;
    modifier.modify(seconds(TIMEOUT), &disk, &change).await.unwrap();
}
