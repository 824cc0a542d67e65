//! Runs the real controller, with the real client, under seeded schedules: a faulty cloud, faulty sidecars, operators,
//! and a process that is killed at any await, in virtual time on one thread. An oracle compares what happened with what
//! was asked for. The same seed is the same history.

#![expect(
    clippy::disallowed_methods,
    reason = "what a killed process has sent continues, and the runtime ends with the run"
)]

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

pub use self::history::{History, Invariant, Violation};
pub use self::plant::Plant;
pub use self::schedule::{Claim, End, Event, EventKind, Schedule, Source};
pub use self::shrink::shrink;

mod claim;
mod disturb;
mod facts;
mod history;
mod oracle;
mod plant;
mod requests;
mod rng;
mod schedule;
mod shrink;
mod sidecar;
mod transport;
mod world;

/// All claims must be done so long after the cloud is healthy. An unresolved creation is resolved after ten minutes.
const PROGRESS: Duration = Duration::from_secs(45 * 60);
/// Requests that are on their way arrive, and accepted operations complete.
const QUIET: Duration = Duration::from_secs(120);

/// The outcome of a run.
#[derive(Debug)]
pub struct Report {
    pub violations: Vec<Violation>,
    pub history: Arc<History>,
    /// Calls that the cloud received.
    pub calls: u64,
    /// The writing ones.
    pub writes: Vec<String>,
}

/// Runs a schedule, with a planted violation if there is one.
///
/// # Panics
/// If the driver panics, or the schedule is invalid.
#[must_use]
pub fn run(schedule: &Schedule, plant: Option<Plant>) -> Report {
    // Jitter of the driver, in this thread.
    fastrand::seed(schedule.seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O");
    runtime.block_on(simulate(schedule.clone(), plant))
}

async fn simulate(schedule: Schedule, plant: Option<Plant>) -> Report {
    let world = Arc::new(world::World::new(&schedule.cloud, plant).await);
    let facts = Arc::<facts::Facts>::default();
    world.start();
    let mut rng = rng::Rng::new(schedule.seed ^ 0x5EED);
    let mut claims = JoinSet::new();
    for number in 0..schedule.claims.len() {
        facts.volume(&schedule.claims[number].name, |_| {});
        let life = claim::Life::new(&world, &facts, &schedule.claims, number, rng.fork());
        claims.spawn(life.run());
    }
    disturb::run(Arc::clone(&world), Arc::clone(&facts), schedule).await;
    let all = async {
        while claims
            .join_next()
            .await
            .is_some_and(|ended| ended.map_err(panic).is_ok())
        {}
    };
    let _ = tokio::time::timeout(PROGRESS, all).await;
    tokio::time::sleep(QUIET).await;
    oracle::check_end(&world, &facts);
    Report {
        violations: world.history.violations(),
        history: Arc::clone(&world.history),
        writes: oracle::describe_calls(&world),
        calls: world.cloud.counts().values().map(|count| count.calls).sum(),
    }
}

fn panic(error: tokio::task::JoinError) {
    if error.is_panic() {
        std::panic::resume_unwind(error.into_panic());
    }
}
