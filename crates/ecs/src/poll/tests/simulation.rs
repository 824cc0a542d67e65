//! Lateness and describe calls over the lifecycle of volumes, in virtual time, against a model of the cloud that is
//! independent of the poller's assumptions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::*;

/// When the request of a call takes effect.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Effect {
    AtArrival,
    AtDeparture,
}

#[derive(Debug, Clone, Copy)]
struct Model {
    volumes: u32,
    parallel: usize,
    /// Of creating, attaching and detaching.
    delays: [f64; 3],
    /// Delays vary by this share.
    spread: f64,
    /// Median latency of a call in seconds, and the sigma of its logarithm.
    latency: (f64, f64),
    effect: Effect,
}

/// The cloud: when the operation on each volume ends.
#[derive(Debug)]
struct Cloud {
    model: Model,
    ends: Mutex<BTreeMap<u32, Instant>>,
    random: Mutex<Random>,
    describes: AtomicUsize,
}

impl Cloud {
    /// Runs the call and returns how long it took.
    async fn call<T>(&self, effect: impl FnOnce() -> T) -> (T, Duration) {
        let latency = self.random.lock().unwrap().latency(self.model.latency);
        if self.model.effect == Effect::AtArrival {
            let outcome = effect();
            sleep(latency).await;
            (outcome, latency)
        } else {
            sleep(latency).await;
            (effect(), latency)
        }
    }

    async fn describe(&self, keys: Vec<u32>) -> Page<Row<bool>> {
        assert!(keys.len() <= MAX_IDS_PER_CALL);
        self.describes.fetch_add(1, Ordering::Relaxed);
        let read = || {
            let ends = self.ends.lock().unwrap();
            let rows = keys.iter().filter_map(|id| {
                let state = ends.get(id)? <= &Instant::now();
                Some(Row { id: *id, state })
            });
            Page::new(rows.collect(), None)
        };
        self.call(read).await.0
    }
}

/// The total seconds of a run, and per volume the lateness (mean and worst) and describe calls.
#[derive(Debug)]
struct Report {
    seconds: f64,
    late: f64,
    latest: f64,
    describes: f64,
}

async fn run(model: Model) -> Report {
    let cloud = Arc::new(Cloud {
        model,
        ends: Mutex::default(),
        random: Mutex::new(Random::new()),
        describes: AtomicUsize::new(0),
    });
    let source = {
        let cloud = Arc::clone(&cloud);
        source(move |keys| {
            let cloud = Arc::clone(&cloud);
            async move { Ok(cloud.describe(keys).await) }
        })
    };
    let poller = Poller::new(Tasks::default(), source);
    let (poller, permits) = (Arc::new(poller), Arc::new(Semaphore::new(model.parallel)));
    let start = Instant::now();
    let mut volumes = JoinSet::new();
    for volume in 0..model.volumes {
        let (cloud, poller, permits) = (Arc::clone(&cloud), Arc::clone(&poller), Arc::clone(&permits));
        volumes.spawn(async move {
            let _permit = permits.acquire().await.unwrap();
            let (begun, mut needed) = (Instant::now(), Duration::ZERO);
            let operations = [Operation::Create, Operation::Attach, Operation::Detach];
            for (operation, delay) in operations.into_iter().zip(model.delays) {
                let factor = 1.0 + model.spread * (2.0 * cloud.random.lock().unwrap().uniform() - 1.0);
                let delay = Duration::from_secs_f64(delay * factor);
                let order = || cloud.ends.lock().unwrap().insert(volume, Instant::now() + delay);
                let (_, latency) = cloud.call(order).await;
                needed += latency + delay;
                let done = |observation: Observation<Row<bool>>| {
                    matches!(observation, Observation::Row(row) if row.state).then_some(())
                };
                let waited = poller.wait_until_done(&volume, deadline(), operation, done);
                waited.await.unwrap();
            }
            let late = begun.elapsed().saturating_sub(needed);
            let (_, latency) = cloud.call(|| cloud.ends.lock().unwrap().remove(&volume)).await;
            let _ = latency;
            late.as_secs_f64()
        });
    }
    let late = volumes.join_all().await;
    let report = Report {
        seconds: start.elapsed().as_secs_f64(),
        late: late.iter().sum::<f64>() / f64::from(model.volumes),
        latest: late.into_iter().fold(0.0, f64::max),
        describes: cloud.describes.load(Ordering::Relaxed) as f64 / f64::from(model.volumes),
    };
    println!(
        "{:>3}x{:<2} {:?} {} {:?} {:?} | s {:.2} late {:.3} max {:.3} d {:.2}",
        model.volumes,
        model.parallel,
        model.delays,
        model.spread,
        model.latency,
        model.effect,
        report.seconds,
        report.late,
        report.latest,
        report.describes
    );
    report
}

const FAST: Model = Model {
    volumes: 1,
    parallel: 1,
    delays: [0.5, 2.0, 2.0],
    spread: 0.0,
    latency: (0.001, 0.0),
    effect: Effect::AtDeparture,
};

const EFFECTS: [Effect; 2] = [Effect::AtArrival, Effect::AtDeparture];

#[tokio::test(start_paused = true)]
async fn a_single_volume_in_a_fresh_process_needs_five_describes() {
    let report = run(FAST).await;
    assert!(report.describes <= 5.0 && report.late <= 0.3, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn volumes_in_sequence_need_four_describes_each() {
    let report = run(Model { volumes: 20, ..FAST }).await;
    assert!(report.describes <= 4.0 && report.late <= 0.2, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn fifty_volumes_in_parallel_share_their_describes() {
    for volumes in [100, 500] {
        let report = run(Model {
            volumes,
            parallel: 50,
            ..FAST
        })
        .await;
        assert!(report.describes <= 0.3 && report.late <= 0.2, "{report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn slow_calls_are_in_flight_when_operations_end() {
    for effect in EFFECTS {
        let model = Model {
            volumes: 60,
            parallel: 60,
            latency: (0.3, 0.0),
            effect,
            ..FAST
        };
        let report = run(model).await;
        assert!(report.latest <= 0.9 && report.describes <= 1.0, "{report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn varying_latency_and_delays_cost_few_describes() {
    for effect in EFFECTS {
        let model = Model {
            volumes: 100,
            parallel: 50,
            latency: (0.06, 0.6),
            effect,
            ..FAST
        };
        let report = run(model).await;
        assert!(report.seconds <= 11.0 && report.describes <= 0.6, "{report:?}");
        let report = run(Model { spread: 0.5, ..model }).await;
        assert!(report.seconds <= 14.5 && report.describes <= 0.8, "{report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn durations_that_are_not_round_are_learned() {
    for parallel in [1, 70] {
        let delays = [1.7, 5.3, 9.1];
        let report = run(Model {
            volumes: 200,
            parallel,
            delays,
            ..FAST
        })
        .await;
        let describes = if parallel == 1 { 5.0 } else { 0.6 };
        assert!(report.describes <= describes && report.late <= 0.6, "{report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_for_a_crowd_show_many_operations_done() {
    for (parallel, spread) in [(1000, 0.0), (1000, 0.3), (5000, 0.3)] {
        let report = run(Model {
            volumes: 5000,
            parallel,
            delays: [1.0, 3.0, 3.0],
            spread,
            latency: (0.06, 0.6),
            effect: Effect::AtArrival,
        })
        .await;
        // Three operations, each with a describe call in flight.
        assert!(report.describes <= 0.1 && report.late <= 1.5, "{report:?}");
    }
}
