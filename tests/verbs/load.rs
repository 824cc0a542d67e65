//! Sixty calls a minute for each API: a whole load gets through, and the cloud hardly ever has to
//! refuse a call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;

use diskplugin::base::Deadline;
use diskplugin::disk::{DiskServices, Error, FailureKind};
use diskplugin::model::{Disk, InstanceId};

use crate::kit::{Setup, minutes, new_disk, new_snapshot, seconds, text};

const VOLUMES: usize = 100;
const NODES: usize = 20;

/// How many calls of each API the cloud rejected in each minute of its clock by throttling.
fn throttled(setup: &Setup) -> BTreeMap<(String, i64), u32> {
    let mut rejected = BTreeMap::new();
    for call in setup.cloud.calls() {
        if call.code.is_some_and(|code| code.contains("Throttling")) {
            let minute = call.at.as_second().div_euclid(60);
            *rejected.entry((call.action, minute)).or_default() += 1;
        }
    }
    rejected
}

/// The calls in flight when a quota is met first are rejected; after that single calls at most.
#[track_caller]
fn learned_once(setup: &Setup) {
    let mut known = BTreeSet::new();
    for ((action, minute), rejected) in throttled(setup) {
        let most = if known.insert(action.clone()) { 48 } else { 2 };
        assert!(
            rejected <= most,
            "{rejected} of {action} in minute {minute}"
        );
    }
}

/// Retries as the sidecars do: for ever, with pauses that grow.
async fn retried<T>(verb: impl AsyncFn(Deadline) -> Result<T, Error>) -> T {
    let mut pause = Duration::from_secs(1);
    for _ in 0..200 {
        match verb(seconds(60)).await {
            Ok(done) => return done,
            Err(error) => {
                let passes = matches!(
                    error.failure_kind(),
                    FailureKind::Unavailable | FailureKind::Aborted | FailureKind::DeadlineExceeded
                );
                assert!(passes, "{}", text(&error));
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(60));
    }
    panic!("two hundred attempts in vain");
}

/// A volume from its making to its end, on one of the nodes, with a snapshot.
async fn live(disks: Arc<DiskServices>, number: usize) {
    let name = format!("pvc-{number}");
    let node: InstanceId = format!("i-{}", number % NODES).parse().unwrap();
    let disk = retried(async |soon| disks.provisioner.create(soon, &new_disk(&name)).await).await;
    let disk = &disk.id;
    retried(async |soon| disks.attacher.attach(soon, disk, &node).await).await;
    let snapshot = new_snapshot(&format!("snap-{number}"), disk);
    let snapshot = retried(async |soon| disks.snapshotter.create(soon, &snapshot).await).await;
    retried(async |soon| disks.attacher.detach(soon, disk, &node).await).await;
    retried(async |soon| disks.snapshotter.delete(soon, &snapshot.id).await).await;
    retried(async |soon| disks.provisioner.delete(soon, disk).await).await;
}

#[tokio::test(start_paused = true)]
async fn a_load_at_sixty_calls_a_minute_learns_each_quota_once() {
    // Looks are what a load needs most; without their limit those of the writes are met.
    for (latency, limit) in [
        ("0s", "60"),
        ("200ms", "60"),
        ("200ms", "60,DescribeDisks=6000"),
    ] {
        let flags = [
            &format!("--throttle={limit}"),
            "--create-delay=500ms",
            "--attach-delay=1s",
            "--detach-delay=1s",
            &format!("--latency={latency}"),
        ];
        let setup = Setup::with_nodes_and_retries(NODES, &flags);
        let begun = Instant::now();
        let (local, mut lives) = (LocalSet::new(), JoinSet::new());
        for number in 0..VOLUMES {
            lives.spawn_local_on(live(Arc::clone(&setup.disks), number), &local);
        }
        let mut lists = JoinSet::new();
        let lister = Arc::clone(&setup.disks);
        lists.spawn(async move {
            loop {
                // Its page may have to wait for the next minute.
                let _ = lister.inventory.list(minutes(1), Disk::clone).await;
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
        });
        local.run_until(lives.join_all()).await;
        lists.shutdown().await;
        let took = begun.elapsed();
        assert_eq!(setup.rows(), Vec::<serde_json::Value>::new());
        let counts = setup.cloud.counts();
        println!(
            "latency {latency}: {VOLUMES} volumes in {} s",
            took.as_secs()
        );
        for (action, count) in &counts {
            let rejected = throttled(&setup);
            let rejected = rejected.iter().filter(|((of, _), _)| of == action);
            println!(
                "  {action}: {} calls, {} throttled",
                count.calls,
                rejected.count()
            );
        }
        learned_once(&setup);
        assert!(took <= Duration::from_secs(20 * 60), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn however_much_is_listed_attaching_and_detaching_come_through() {
    let flags = [
        "--throttle=60",
        "--attach-delay=1s",
        "--detach-delay=1s",
        "--latency=50ms",
    ];
    let setup = Setup::with_nodes_and_retries(1, &flags);
    let disk = setup.disk("pvc-1").await;
    let mut lists = JoinSet::new();
    for _ in 0..50 {
        let disks = Arc::clone(&setup.disks);
        lists.spawn(async move {
            loop {
                // Refusals are what this is about; the next one comes at once.
                let _ = disks.inventory.list(minutes(2), Disk::clone).await;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
    }
    // The first minute is spent on learning.
    tokio::time::sleep(Duration::from_secs(125)).await;
    let node: InstanceId = "i-0".parse().unwrap();
    for round in 0..20 {
        let begun = Instant::now();
        let attached = setup.disks.attacher.attach(minutes(1), &disk, &node).await;
        assert!(attached.is_ok(), "round {round}: {attached:?}");
        let attach = begun.elapsed();
        let detached = setup.disks.attacher.detach(minutes(1), &disk, &node).await;
        assert!(detached.is_ok(), "round {round}: {detached:?}");
        let both = begun.elapsed();
        assert!(both <= Duration::from_secs(25), "{attach:?} {both:?}");
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    lists.shutdown().await;
    learned_once(&setup);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_makes_no_further_call_and_the_next_one_finds_what_it_began() {
    let flags = ["--create-delay=30s", "--throttle=60"];
    let setup = Setup::with_nodes_and_retries(1, &flags);
    let (disks, new) = (Arc::clone(&setup.disks), new_disk("pvc-1"));
    let mut call = JoinSet::new();
    call.spawn(async move { disks.provisioner.create(minutes(5), &new).await });
    tokio::time::sleep(Duration::from_secs(3)).await;
    call.shutdown().await;
    let begun = setup.only_disk();
    let before = setup.cloud.calls().len();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(setup.cloud.calls().len(), before);
    assert_eq!(setup.disk("pvc-1").await, begun);
    assert_eq!(setup.rows().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_all_have_left_while_the_window_is_shut_asks_nothing_more() {
    let flags = ["--attach-delay=300s", "--throttle=DescribeDisks=10"];
    let setup = Setup::with_nodes_and_retries(1, &flags);
    let disk = setup.disk("pvc-1").await;
    let disks = Arc::clone(&setup.disks);
    let mut call = JoinSet::new();
    let waiting = disk.clone();
    call.spawn(async move {
        let node = "i-0".parse().unwrap();
        disks.attacher.attach(minutes(30), &waiting, &node).await
    });
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(!throttled(&setup).is_empty(), "the window is not shut");
    let before = setup.calls("DescribeDisks");
    call.shutdown().await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(setup.calls("DescribeDisks"), before);
    let node = "i-0".parse().unwrap();
    assert!(
        setup
            .disks
            .attacher
            .attach(minutes(10), &disk, &node)
            .await
            .is_ok()
    );
    assert_eq!(setup.calls("AttachDisk"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_within_a_shut_window_fails_at_once_with_the_wait_and_costs_no_call() {
    let setup = Setup::with_nodes_and_retries(1, &["--throttle=CreateDisk=1"]);
    setup.disk("pvc-1").await;
    let rejected = setup
        .disks
        .provisioner
        .create(seconds(20), &new_disk("pvc-2"))
        .await;
    assert!(text(&rejected.unwrap_err()).contains("Throttling"));
    let calls = setup.calls("CreateDisk");
    let begun = Instant::now();
    let late = setup
        .disks
        .provisioner
        .create(seconds(20), &new_disk("pvc-2"))
        .await;
    let late = late.unwrap_err();
    assert_eq!(
        late.failure_kind(),
        FailureKind::Unavailable,
        "{}",
        text(&late)
    );
    for part in ["Throttling", "RequestId", "not sent"] {
        assert!(text(&late).contains(part), "{}", text(&late));
    }
    assert!(begun.elapsed() <= Duration::from_secs(1));
    assert_eq!(setup.calls("CreateDisk"), calls);
}
