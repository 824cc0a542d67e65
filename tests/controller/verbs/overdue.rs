//! Operations that take longer than usual: calls return, retries resume them, and other disks are not delayed.

use std::fmt::Debug;

use crate::verbs::kit::*;

/// The timeout of csi-attacher.
pub(crate) const TIMEOUT: u64 = 150;

/// When the first call for an operation that does not end returns.
const OVERDUE: std::ops::RangeInclusive<Duration> = Duration::from_secs(20)..=Duration::from_secs(30);

/// A call for an operation that is overdue already.
const NO_WAIT: Duration = Duration::from_secs(1);

pub(crate) async fn timed<T>(call: impl Future<Output = T>) -> (T, Duration) {
    let start = Instant::now();
    let outcome = call.await;
    (outcome, start.elapsed())
}

/// The call must fail once its operation is overdue, with these parts in its message.
async fn assert_overdue<T: Debug>(parts: &[&str], call: impl Future<Output = Result<T, Error>>) {
    let (outcome, took) = timed(call).await;
    assert_error(&outcome.unwrap_err(), FailureKind::DeadlineExceeded, parts);
    assert!(OVERDUE.contains(&took), "{took:?}");
}

/// The call must fail without waiting, because its operation is overdue already.
async fn assert_still_overdue<T: Debug>(parts: &[&str], call: impl Future<Output = Result<T, Error>>) {
    let (outcome, took) = timed(call).await;
    assert_error(&outcome.unwrap_err(), FailureKind::DeadlineExceeded, parts);
    assert!(took <= NO_WAIT, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stuck_detach_returns_once_it_is_overdue_and_its_retries_at_once() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&["--detach-delay=1s", stale]);
        let disk = setup.attached("pvc-1").await;
        sleep(10).await;
        setup.fault("DetachDisk", &json!("fails-later"));
        let detacher = &setup.disks.detacher;
        let parts = ["DETACH_STUCK", disk.as_str(), "i-one", "is Detaching", "25 s"];
        assert_overdue(&parts, detacher.detach(seconds(TIMEOUT), &disk, &node_one())).await;
        sleep(5).await;
        for pause in [1, 30, 300] {
            assert_still_overdue(&parts[..4], detacher.detach(seconds(TIMEOUT), &disk, &node_one())).await;
            sleep(pause).await;
        }
        assert_eq!(setup.calls("DetachDisk"), 1, "the operation is resumed");
        setup.cloud.release(&disk);
        sleep(5).await;
        let (done, took) = timed(detacher.detach(seconds(TIMEOUT), &disk, &node_one())).await;
        done.unwrap();
        assert!(took <= NO_WAIT, "{took:?}");
        assert_eq!(setup.calls("DetachDisk"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_attach_returns_once_it_is_overdue_and_a_retry_finds_it_attached() {
    let setup = Setup::new(&["--attach-delay=100s"]);
    let disk = setup.disk("pvc-1").await;
    let attacher = &setup.disks.attacher;
    assert_overdue(
        &["attach disk", disk.as_str(), "i-one", "25 s", "is Attaching"],
        attacher.attach(seconds(TIMEOUT), &disk, &node_one()),
    )
    .await;
    sleep(30).await;
    assert_still_overdue(&["is Attaching"], attacher.attach(seconds(TIMEOUT), &disk, &node_one())).await;
    sleep(60).await;
    setup.attach(&disk, &node_one()).await;
    assert_eq!(setup.calls("AttachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_attach_that_the_cloud_aborts_after_the_call_returned_is_requested_again() {
    let setup = Setup::new(&["--attach-delay=60s"]);
    let disk = setup.disk("pvc-1").await;
    setup.fault("AttachDisk", &json!("fails-later"));
    let attacher = &setup.disks.attacher;
    attacher.attach(seconds(TIMEOUT), &disk, &node_one()).await.unwrap_err();
    sleep(60).await;
    setup.configure(&json!({"delays": {"attach": "2s"}}));
    setup.attach(&disk, &node_one()).await;
}

#[tokio::test(start_paused = true)]
async fn a_publish_waits_only_briefly_for_a_stuck_detach_from_another_node() {
    let setup = Setup::new(&["--detach-delay=1s"]);
    let disk = setup.attached("pvc-1").await;
    setup.fault("DetachDisk", &json!("fails-later"));
    let (attacher, detacher) = (&setup.disks.attacher, &setup.disks.detacher);
    detacher.detach(seconds(5), &disk, &node_one()).await.unwrap_err();
    let parts = ["DETACH_STUCK", disk.as_str(), "i-two", "node i-one", "is Detaching"];
    let (first, took) = timed(attacher.attach(seconds(TIMEOUT), &disk, &node_two())).await;
    assert_error(&first.unwrap_err(), FailureKind::DeadlineExceeded, &parts);
    assert!(took <= *OVERDUE.end(), "{took:?}");
    assert_still_overdue(&parts, attacher.attach(seconds(TIMEOUT), &disk, &node_two())).await;
    setup.cloud.release(&disk);
    sleep(10).await;
    setup.attach(&disk, &node_two()).await;
}

#[tokio::test(start_paused = true)]
async fn disks_behind_an_overdue_detach_of_their_node_return_and_go_on_once_it_ends() {
    let setup = Setup::new(&["--detach-delay=2s"]);
    let disks = setup.create_disks(5).await;
    for disk in &disks {
        setup.attach(disk, &node_one()).await;
    }
    sleep(10).await;
    setup.fault("DetachDisk", &json!("fails-later"));
    let detach = |setup: Setup, disk: DiskId| async move {
        let (disk, node) = (disk, node_one());
        timed(setup.try_detach(seconds(TIMEOUT), &disk, &node)).await
    };
    let mut stuck = 0;
    for (outcome, took) in setup.each(disks.clone(), detach).await {
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
        let (_, took) = timed(setup.try_detach(seconds(TIMEOUT), disk, &node_one())).await;
        assert!(took <= NO_WAIT, "{took:?}");
    }
    for disk in &disks {
        setup.cloud.release(disk);
    }
    sleep(10).await;
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
    assert_overdue(
        &["TIMED_OUT", "is Creating"],
        provisioner.create(seconds(TIMEOUT), &new),
    )
    .await;
    for _ in 0..3 {
        sleep(20).await;
        assert_still_overdue(&["is Creating"], provisioner.create(seconds(TIMEOUT), &new)).await;
    }
    sleep(200).await;
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
    assert_overdue(&[], snapshotter.create(seconds(TIMEOUT), &new)).await;
    sleep(20).await;
    assert_still_overdue(&[], snapshotter.create(seconds(TIMEOUT), &new)).await;
    sleep(200).await;
    snapshotter.create(seconds(TIMEOUT), &new).await.unwrap();
    assert_eq!(setup.calls("CreateSnapshot"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_expansion_returns_once_it_is_overdue_and_is_found_by_a_retry() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.configure(&json!({"delays": {"resize": "200s"}}));
    let resizer = &setup.disks.resizer;
    assert_overdue(
        &["resize disk", disk.as_str()],
        resizer.resize(seconds(TIMEOUT), &disk, gib(30)),
    )
    .await;
    sleep(200).await;
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
    assert_overdue(
        &["complete task", disk.as_str()],
        modifier.modify(seconds(TIMEOUT), &disk, &change),
    )
    .await;
    let orders = setup.calls("ModifyDiskSpec");
    for _ in 0..3 {
        sleep(300).await;
        assert_still_overdue(&["complete task"], modifier.modify(seconds(TIMEOUT), &disk, &change)).await;
    }
    assert_eq!(setup.calls("ModifyDiskSpec"), orders);
    sleep(3600).await;
    modifier.modify(seconds(TIMEOUT), &disk, &change).await.unwrap();
}
