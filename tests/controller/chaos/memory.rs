//! In virtual time, on the fake cloud in memory, with the retries of the client.

use std::sync::Arc;
use std::time::Duration;

use crate::chaos::run::{Faults, NODES, Outcome, run};
use crate::common::memory_cloud::{CloudClock, client, start};
use crate::common::sidecar::RetryPolicy;

const VOLUMES: usize = 200;

/// The values of the sidecars' charts.
const RETRY_POLICY: RetryPolicy = RetryPolicy {
    timeout: Duration::from_secs(60),
    initial: Duration::from_secs(1),
    max: Duration::from_mins(5),
    total: Duration::from_hours(1),
};

/// A run under these faults. The seed determines all random values.
async fn run_in_memory(seed: u64, faults: Faults) -> Outcome {
    let nodes: Vec<_> = (0..NODES).map(|n| format!("i-{n}=cn-beijing-a")).collect();
    let flags = [format!("--nodes={}", nodes.join(",")), format!("--seed={seed}")];
    let delays = [
        "--create-delay=500ms",
        "--attach-delay=2s",
        "--detach-delay=2s",
        "--resize-delay=1s",
        "--cut-delay=500ms",
        "--snapshot-delay=5s",
        "--delete-delay=1s",
        "--latency=20ms..80ms",
    ];
    let flags = flags.iter().map(String::as_str).chain(delays);
    let cloud = start(flags);
    let ecs = Arc::new(client(&cloud));
    run(
        &cloud,
        ecs,
        Arc::new(CloudClock(cloud.clone())),
        (VOLUMES, faults, RETRY_POLICY),
    )
    .await
}

/// The first seed of a test.
fn first_seed() -> u64 {
    let seed = std::env::var("CHAOS_SEED").ok();
    seed.map_or(1, |seed| seed.parse().expect("CHAOS_SEED is a number"))
}

fn seeds(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|n| first_seed() + n)
}

/// Runs under these faults with each seed. Neither the final state nor any response may be wrong.
async fn assert_clean(faults: Faults, seeds: impl Iterator<Item = u64>) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for seed in seeds {
        let outcome = run_in_memory(seed, faults).await;
        let findings = &outcome.findings;
        println!(
            "{faults:?}, seed {seed}: {VOLUMES} volumes in {:.1} s, {} cloud calls, {} rejected; {}\n{}",
            outcome.wall.as_secs_f64(),
            outcome.calls,
            outcome.refused,
            findings.counts(),
            outcome.codes
        );
        assert!(
            findings.is_clean(),
            "{faults:?}, reproduce with CHAOS_SEED={seed} cargo test --test controller chaos: {findings:#?}"
        );
        outcomes.push(outcome);
    }
    outcomes
}

#[tokio::test(start_paused = true)]
async fn faults_slow_two_hundred_volumes_down_by_at_most_30_percent() {
    let without = assert_clean(Faults::None, seeds(1)).await.remove(0).wall;
    for outcome in assert_clean(Faults::Calls, seeds(2)).await {
        let ratio = outcome.wall.as_secs_f64() / without.as_secs_f64();
        println!("{ratio:.2} x the time of the run without faults, {without:?}");
        assert!(ratio <= 1.3, "{ratio:.2} x");
    }
}

#[tokio::test(start_paused = true)]
async fn stale_reads_cause_no_lost_duplicate_or_misplaced_volume() {
    assert_clean(Faults::StaleReads, seeds(2)).await;
}

#[tokio::test(start_paused = true)]
async fn faults_and_stale_reads_cause_no_lost_duplicate_or_misplaced_volume() {
    assert_clean(Faults::Both, seeds(3)).await;
}
