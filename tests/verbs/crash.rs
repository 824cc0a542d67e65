//! Calls made by processes that die at any instant, on a cloud where all kinds of things go wrong.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use diskplugin::base::Deadline;
use diskplugin::disk::{DiskServices, Error, FailureKind};
use diskplugin::model::{DiskId, SnapshotId};

use crate::kit::{Setup, minutes, node_one, text};
use crate::rng::Rng;

/// The tag with the name that was asked for.
pub(crate) const CSI_NAME: &str = diskplugin::model::tag::CSI_NAME;
/// Seeds of each test.
pub(crate) const RUNS: u64 = 50;

pub(crate) fn rows(setup: &Setup, what: &str) -> Vec<Value> {
    setup.cloud.state()[what].as_array().unwrap().clone()
}

/// The ids of all rows.
pub(crate) fn parsed(ids: &BTreeSet<String>) -> BTreeSet<SnapshotId> {
    ids.iter().map(|id| id.parse().unwrap()).collect()
}

pub(crate) fn ids(rows: &[Value]) -> BTreeSet<String> {
    rows.iter()
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

pub(crate) fn setup(seed: u64, rng: &mut Rng) -> Setup {
    let stale = rng.choose(&["--stale=0s", "--stale=2s", "--stale=0s..2s"]);
    let missing = rng.choose(&["--missing-is-error", "--never-attached"]);
    let seed = format!("--seed={seed}");
    let slow = [
        "--create-delay=0s..3s",
        "--cut-delay=0s..4s",
        "--snapshot-delay=0s..20s",
        "--latency=0s..1s",
    ];
    let mut flags = vec![stale, missing, &seed];
    flags.extend(slow);
    if stale.contains("..") && rng.below(2) == 0 {
        flags.push("--stale-jumping");
    }
    let setup = Setup::new(&flags).with_system_disk();
    let memory = rng.choose(&["10m", "24h"]);
    let rules = json!({"token_burn_percent": rng.below(101), "token_memory": memory});
    setup.configure(&json!({"rules": rules}));
    setup
}

/// DiskServices that were attached once, as all that are worth keeping.
pub(crate) async fn used(setup: &Setup, count: usize) -> Vec<DiskId> {
    let mut disks = Vec::new();
    for number in 0..count {
        let disk = setup.disk(&format!("source-{number}")).await;
        setup.attach(&disk, &node_one()).await;
        disks.push(disk);
    }
    disks
}

/// What goes wrong next.
pub(crate) fn disturb(setup: &Setup, rng: &mut Rng, actions: &[&str]) {
    let kinds = [
        json!("reset-after"),
        json!("internal-error-after"),
        json!("internal-error"),
        json!("reset-before"),
        json!("truncated"),
        json!({"delay-before": "2s"}),
        json!({"delay-after": "2s"}),
        json!("fails-later"),
        json!({"code": {"status": 400, "code": "Throttling.User"}}),
    ];
    let (action, kind) = (rng.choose(actions), rng.choose(&kinds));
    setup.faults(action, 1 + rng.below(2), &kind);
}

pub(crate) fn passes(error: &Error) -> bool {
    matches!(
        error.failure_kind(),
        FailureKind::Unavailable
            | FailureKind::Aborted
            | FailureKind::DeadlineExceeded
            | FailureKind::Internal
    )
}

/// Repeats the call, as a sidecar does, through processes that die in the middle of it. None when it
/// was given up after so many attempts.
pub(crate) async fn attempts<T>(
    setup: &Setup,
    rng: &mut Rng,
    actions: &[&str],
    most: usize,
    verb: impl AsyncFn(Arc<DiskServices>, Deadline) -> Result<T, Error>,
) -> Option<T> {
    let mut disks = setup.restarted();
    for attempt in 0..most {
        if attempt < 25 {
            disturb(setup, rng, actions);
        } else {
            setup.configure(&json!({"faults": []}));
        }
        // What an old token still answers with, and nothing shows, is believed to be gone after ten
        // seconds without a break: in the end a process lives longer than that.
        let longest = rng.choose(&[500, 5_000, if attempt < 50 { 25_000 } else { 90_000 }]);
        let patience = Duration::from_millis(1 + rng.below(longest.max(25_000)));
        let life = Duration::from_millis(rng.below(longest));
        match timeout(life, verb(Arc::clone(&disks), Deadline::after(patience))).await {
            Ok(Ok(made)) => return Some(made),
            Ok(Err(error)) if passes(&error) => {
                tokio::time::sleep(Duration::from_millis(rng.below(3000))).await;
            }
            Ok(Err(error)) => panic!("{}", text(&error)),
            // Killed: another process takes over, which takes longer than reads lag.
            Err(_) => {
                disks = setup.restarted();
                tokio::time::sleep(Duration::from_secs(3)).await;
            }
        }
    }
    None
}

pub(crate) async fn to_the_end<T>(
    setup: &Setup,
    rng: &mut Rng,
    actions: &[&str],
    verb: impl AsyncFn(Arc<DiskServices>, Deadline) -> Result<T, Error>,
) -> T {
    let done = attempts(setup, rng, actions, 200, verb).await;
    done.expect("two hundred attempts suffice")
}

/// Faults end, and reads show what is.
pub(crate) async fn calm(setup: &Setup, after: u64) {
    setup.configure(&json!({"faults": [], "stale": {"lag": "0s"}}));
    tokio::time::sleep(Duration::from_secs(after)).await;
}
