//! Load under a quota of 60 calls per minute for each API: every operation completes with few throttled calls.

use tokio::task::LocalSet;

use crate::verbs::kit::*;

const VOLUMES: usize = 100;
const NODES: usize = 20;

/// Number of throttled calls of each API in each minute of the cloud's clock.
fn throttled(setup: &Setup) -> BTreeMap<(String, i64), u32> {
    let mut throttled = BTreeMap::new();
    for call in setup.cloud.calls() {
        if call.code.is_some_and(|code| code.contains("Throttling")) {
            let minute = call.at.as_second().div_euclid(60);
            *throttled.entry((call.action, minute)).or_default() += 1;
        }
    }
    throttled
}

/// Asserts that only the calls in flight are throttled when a quota is exceeded for the first time, and at most two
/// calls per minute after that.
#[track_caller]
fn assert_quotas_learned_once(setup: &Setup) {
    let mut exceeded = BTreeSet::new();
    for ((action, minute), count) in throttled(setup) {
        let limit = if exceeded.insert(action.clone()) { 48 } else { 2 };
        assert!(count <= limit, "{count} of {action} in minute {minute}");
    }
}

/// Repeats the call as a sidecar does, with growing pauses.
async fn retry<T>(call: impl AsyncFn(Deadline) -> Result<T, Error>) -> T {
    let mut pause = Duration::from_secs(1);
    for _ in 0..200 {
        match call(seconds(60)).await {
            Ok(value) => return value,
            Err(error) => assert_not_final(&error),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(60));
    }
    panic!("200 attempts failed");
}

/// The lifecycle of a volume with a snapshot on one of the nodes.
async fn lifecycle(disks: Arc<DiskServices>, number: usize) {
    let name = format!("pvc-{number}");
    let node: InstanceId = format!("i-{}", number % NODES).parse().unwrap();
    let disk = retry(async |deadline| disks.provisioner.create(deadline, &new_disk(&name)).await).await;
    let disk = &disk.id;
    retry(async |deadline| disks.attacher.attach(deadline, disk, &node).await).await;
    let snapshot = new_snapshot(&format!("snap-{number}"), disk);
    let snapshot = retry(async |deadline| disks.snapshotter.create(deadline, &snapshot).await).await;
    retry(async |deadline| disks.detacher.detach(deadline, disk, &node).await).await;
    retry(async |deadline| disks.snapshotter.delete(deadline, &snapshot.id).await).await;
    retry(async |deadline| disks.provisioner.delete(deadline, disk).await).await;
}

#[tokio::test(start_paused = true)]
async fn a_load_under_60_calls_per_minute_learns_each_quota_once() {
    // DescribeDisks is called most; without its quota, the quotas of the writes are exceeded.
    for (latency, limit) in [("0s", "60"), ("200ms", "60"), ("200ms", "60,DescribeDisks=6000")] {
        let flags = [
            &format!("--throttle={limit}"),
            "--create-delay=500ms",
            "--attach-delay=1s",
            "--detach-delay=1s",
            &format!("--latency={latency}"),
        ];
        let setup = Setup::with_nodes(NODES, &flags);
        let started = Instant::now();
        let (local, mut volumes) = (LocalSet::new(), JoinSet::new());
        for number in 0..VOLUMES {
            volumes.spawn_local_on(lifecycle(Arc::clone(&setup.disks), number), &local);
        }
        let mut lists = JoinSet::new();
        let lister = Arc::clone(&setup.disks);
        lists.spawn(async move {
            loop {
                // A page may have to wait for the next minute.
                let _ = lister.inventory.list(minutes(1), Disk::clone).await;
                sleep(5).await;
            }
        });
        local.run_until(volumes.join_all()).await;
        lists.shutdown().await;
        let elapsed = started.elapsed();
        assert_eq!(setup.rows(), Vec::<serde_json::Value>::new());
        let counts = setup.cloud.counts();
        println!("latency {latency}: {VOLUMES} volumes in {} s", elapsed.as_secs());
        for (action, count) in &counts {
            let throttled = throttled(&setup);
            let throttled = throttled.iter().filter(|((other, _), _)| other == action);
            println!("  {action}: {} calls, {} throttled", count.calls, throttled.count());
        }
        assert_quotas_learned_once(&setup);
        assert!(elapsed <= Duration::from_secs(20 * 60), "{elapsed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn attach_and_detach_complete_under_continuous_lists() {
    let flags = [
        "--throttle=60",
        "--attach-delay=1s",
        "--detach-delay=1s",
        "--latency=50ms",
    ];
    let setup = Setup::with_nodes(1, &flags);
    let disk = setup.disk("pvc-1").await;
    let mut lists = JoinSet::new();
    for _ in 0..50 {
        let disks = Arc::clone(&setup.disks);
        lists.spawn(async move {
            loop {
                // The result is irrelevant; the next list starts immediately.
                let _ = disks.inventory.list(minutes(2), Disk::clone).await;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
    }
    // The driver learns the quota during the first minute.
    sleep(125).await;
    let node: InstanceId = "i-0".parse().unwrap();
    for round in 0..20 {
        let started = Instant::now();
        let attached = setup.try_attach(minutes(1), &disk, &node).await;
        assert!(attached.is_ok(), "round {round}: {attached:?}");
        let attach = started.elapsed();
        let detached = setup.try_detach(minutes(1), &disk, &node).await;
        assert!(detached.is_ok(), "round {round}: {detached:?}");
        let both = started.elapsed();
        assert!(both <= Duration::from_secs(25), "{attach:?} {both:?}");
        sleep(3).await;
    }
    lists.shutdown().await;
    assert_quotas_learned_once(&setup);
}

#[tokio::test(start_paused = true)]
async fn a_throttled_poll_stops_when_all_subscribers_are_cancelled() {
    let flags = ["--attach-delay=300s", "--throttle=DescribeDisks=10"];
    let setup = Setup::with_nodes(1, &flags);
    let disk = setup.disk("pvc-1").await;
    let disks = Arc::clone(&setup.disks);
    let mut call = JoinSet::new();
    let waiting = disk.clone();
    call.spawn(async move {
        let node = "i-0".parse().unwrap();
        disks.attacher.attach(minutes(30), &waiting, &node).await
    });
    sleep(20).await;
    assert!(!throttled(&setup).is_empty(), "DescribeDisks is not throttled");
    let before = setup.calls("DescribeDisks");
    call.shutdown().await;
    sleep(300).await;
    assert_eq!(setup.calls("DescribeDisks"), before);
    let node = "i-0".parse().unwrap();
    assert!(setup.try_attach(minutes(10), &disk, &node).await.is_ok());
    // The order of the canceled call is resumed by a read.
    assert_eq!(setup.calls("AttachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_before_the_end_of_the_throttling_fails_immediately_without_a_call() {
    let setup = Setup::with_nodes(1, &["--throttle=CreateDisk=1"]);
    setup.disk("pvc-1").await;
    let rejected = setup.try_create(seconds(20), &new_disk("pvc-2")).await;
    assert!(text(&rejected.unwrap_err()).contains("Throttling"));
    let calls = setup.calls("CreateDisk");
    let started = Instant::now();
    let late = setup.try_create(seconds(20), &new_disk("pvc-2")).await.unwrap_err();
    let parts = ["Throttling", "RequestId", "not sent"];
    assert_error(&late, FailureKind::Unavailable, &parts);
    assert!(started.elapsed() <= Duration::from_secs(1));
    assert_eq!(setup.calls("CreateDisk"), calls);
}
