//! Calls of processes that terminate at random instants, while the cloud injects faults.

use crate::verbs::kit::*;

/// The tag that holds the CSI name.
pub(crate) const CSI_NAME: &str = diskplugin::model::tag::CSI_NAME;
const CLUSTER: &str = diskplugin::model::tag::CLUSTER;
/// Number of seeds of each test.
pub(crate) const RUNS: u64 = 50;

/// The resources without those of another cluster.
pub(crate) fn rows(setup: &Setup, resource: &str) -> Vec<Value> {
    let mut rows = setup.cloud.state()[resource].as_array().unwrap().clone();
    rows.retain(|row| row["tags"][CLUSTER] != "other-cluster");
    rows
}

pub(crate) fn parse_ids(ids: &BTreeSet<String>) -> BTreeSet<SnapshotId> {
    ids.iter().map(|id| id.parse().unwrap()).collect()
}

pub(crate) fn ids(rows: &[Value]) -> BTreeSet<String> {
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

pub(crate) fn setup(seed: u64, rng: &mut Rng) -> Setup {
    let stale = rng.choose(&["--stale=0s", "--stale=2s", "--stale=0s..2s"]);
    let missing = rng.choose(&["--missing-is-error", "--never-attached"]);
    let seed = format!("--seed={seed}");
    let delays = [
        "--create-delay=0s..3s",
        "--cut-delay=0s..4s",
        "--snapshot-delay=0s..20s",
        "--latency=0s..1s",
    ];
    let mut flags = vec![stale, missing, &seed];
    flags.extend(delays);
    if stale.contains("..") && rng.below(2) == 0 {
        flags.push("--stale-jumping");
    }
    let setup = Setup::new(&flags);
    let memory = rng.choose(&["10m", "24h"]);
    let rules = json!({"token_burn_percent": rng.below(101), "token_memory": memory});
    setup.configure(&json!({"rules": rules}));
    setup
}

/// Creates disks and attaches each of them, because a disk that was never attached cannot have snapshots.
pub(crate) async fn attached_disks(setup: &Setup, count: usize) -> Vec<DiskId> {
    let mut disks = Vec::new();
    for number in 0..count {
        let disk = setup.disk(&format!("source-{number}")).await;
        setup.attach(&disk, &node_one()).await;
        disks.push(disk);
    }
    // Snapshots that show that the access key may describe snapshots.
    let other = setup.other_cluster();
    let canary = new_snapshot("canary", &disks[0]);
    other.try_snapshot(minutes(5), &canary).await.unwrap();
    let group = new_group("canary", &disks.iter().collect::<Vec<_>>());
    other.try_group(minutes(5), &group).await.unwrap();
    disks
}

/// Injects a random fault into the next calls of a random action.
pub(crate) fn inject_fault(setup: &Setup, rng: &mut Rng, actions: &[&str]) {
    let kinds = [
        json!("reset-after"),
        json!("internal-error-after"),
        json!("internal-error"),
        json!("reset-before"),
        json!("truncated"),
        json!({"delay-before": "2s"}),
        json!({"delay-after": "2s"}),
        json!("fails-later"),
        error_code(400, "Throttling.User"),
    ];
    let (action, kind) = (rng.choose(actions), rng.choose(&kinds));
    // The client's retries pass one or two, but not thirty.
    let times = rng.choose(&[1, 2, 30]);
    setup.faults(action, times, &kind);
}

fn is_retryable(error: &Error) -> bool {
    !is_final(error) || error.failure_kind() == FailureKind::Internal
}

/// The same while the stock changes.
pub(crate) fn is_retryable_or_out_of_stock(error: &Error) -> bool {
    is_retryable(error) || error.failure_kind() == FailureKind::ResourceExhausted
}

/// Repeats the call as a sidecar does, while the processes terminate at random instants. Returns `None` after
/// `max_attempts` failures.
pub(crate) async fn retry_at_most<T>(
    setup: &Setup,
    rng: &mut Rng,
    actions: &[&str],
    max_attempts: usize,
    call: impl AsyncFn(Arc<DiskServices>, Deadline) -> Result<T, Error>,
) -> Option<T> {
    let first = setup.restarted().disks;
    attempts(setup, rng, first, (actions, &[]), max_attempts, call).await
}

/// The same, beginning with this process, while the stock changes to one of these.
pub(crate) async fn attempts<T>(
    setup: &Setup,
    rng: &mut Rng,
    mut disks: Arc<DiskServices>,
    (actions, stock): (&[&str], &[Value]),
    max_attempts: usize,
    call: impl AsyncFn(Arc<DiskServices>, Deadline) -> Result<T, Error>,
) -> Option<T> {
    let can_repeat: fn(&Error) -> bool = match stock {
        [] => is_retryable,
        _ => is_retryable_or_out_of_stock,
    };
    for attempt in 0..max_attempts {
        if attempt < 30 {
            if !stock.is_empty() {
                setup.configure(&json!({"out_of_stock": rng.choose(stock)}));
            }
            inject_fault(setup, rng, actions);
        } else {
            setup.configure(&json!({"faults": [], "out_of_stock": []}));
        }
        // What an earlier process did is certain after a process has been active for a minute, and that an accepted
        // resource is lost after ten: later processes run long enough.
        let max_lifetime = rng.choose(&[500, 5_000, 25_000]);
        let call_timeout = Duration::from_millis(1 + rng.below(25_000));
        let lifetime = match attempt {
            0..50 => Duration::from_millis(rng.below(max_lifetime)),
            _ => Duration::from_secs(3600),
        };
        match timeout(lifetime, call(Arc::clone(&disks), Deadline::after(call_timeout))).await {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(error)) if can_repeat(&error) => {
                tokio::time::sleep(Duration::from_millis(rng.below(10_000))).await;
            }
            Ok(Err(error)) => panic!("attempt {attempt}: {}", text(&error)),
            // The process terminates. A restart takes longer than the staleness of reads.
            Err(_) => {
                disks = setup.restarted().disks;
                sleep(3).await;
            }
        }
    }
    None
}

pub(crate) async fn retry<T>(
    setup: &Setup,
    rng: &mut Rng,
    actions: &[&str],
    call: impl AsyncFn(Arc<DiskServices>, Deadline) -> Result<T, Error>,
) -> T {
    let outcome = retry_at_most(setup, rng, actions, 200, call).await;
    outcome.expect("a call succeeds within 200 attempts")
}

/// Stops the faults, makes reads current and waits.
pub(crate) async fn clear_faults(setup: &Setup, seconds: u64) {
    setup.configure(&json!({"faults": [], "stale": {"lag": "0s"}}));
    sleep(seconds).await;
}
