//! Lifecycles of volumes under quotas with different windows, in virtual time: the poller and the rate limiter
//! together, against a model of the cloud that shares no code with them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake_ecs::TokioClock;
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::*;
use crate::Error;
use crate::rate_limit::{Priority, RateLimiter};
use crate::retry::run;

/// A quota of each action.
#[derive(Debug, Clone, Copy)]
enum Quota {
    /// So many calls in each window of the cloud's clock, in seconds.
    Window(usize, f64),
    /// So many calls in any period of this length.
    Sliding(usize, f64),
    /// Capacity, and refill per second.
    Bucket(f64, f64),
}

#[derive(Debug, Clone, Copy)]
struct Model {
    volumes: u32,
    quota: Quota,
    /// The time of the cloud's clock at the start, in seconds.
    start: f64,
    /// Median of a call in seconds, and the sigma of its logarithm.
    latency: (f64, f64),
    /// Whether a throttling error states how long to wait.
    states_wait: bool,
}

#[derive(Debug, Default)]
struct Meter {
    window: f64,
    used: usize,
    recent: VecDeque<f64>,
    level: Option<(f64, f64)>,
}

impl Meter {
    /// Counts a call, or returns the time from which calls are accepted.
    fn take(&mut self, quota: Quota, now: f64) -> Result<(), f64> {
        match quota {
            Quota::Window(calls, length) => {
                let window = (now / length).floor();
                if window > self.window {
                    (self.window, self.used) = (window, 0);
                }
                if self.used >= calls {
                    return Err((window + 1.0) * length);
                }
                self.used += 1;
            }
            Quota::Sliding(calls, length) => {
                self.recent.retain(|at| *at > now - length);
                if self.recent.len() >= calls {
                    return Err(self.recent[0] + length);
                }
                self.recent.push_back(now);
            }
            Quota::Bucket(capacity, refill) => {
                let (level, at) = self.level.unwrap_or((capacity, now));
                let level = (level + (now - at) * refill).min(capacity);
                if level < 1.0 {
                    self.level = Some((level, now));
                    return Err(now + (1.0 - level) / refill);
                }
                self.level = Some((level - 1.0, now));
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Cloud {
    model: Model,
    start: Instant,
    limiter: RateLimiter,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    meters: BTreeMap<&'static str, Meter>,
    ends: BTreeMap<u32, Instant>,
    calls: usize,
    throttled: usize,
    random: Random,
}

impl Cloud {
    /// Half of the latency of a call.
    async fn delay(&self) {
        let latency = self.state.lock().unwrap().random.latency(self.model.latency);
        sleep(latency / 2).await;
    }

    async fn call<T>(&self, action: &'static str, effect: impl FnOnce(&mut State) -> T) -> crate::Result<T> {
        self.delay().await;
        let outcome = {
            let mut state = self.state.lock().unwrap();
            let now = self.model.start + self.start.elapsed().as_secs_f64();
            let meter = state.meters.entry(action).or_default();
            let taken = meter.take(self.model.quota, now);
            state.calls += 1;
            state.throttled += usize::from(taken.is_err());
            match taken {
                Ok(()) => Ok(effect(&mut state)),
                Err(opens) => Err(opens - now),
            }
        };
        self.delay().await;
        outcome.map_err(|wait| {
            let wait = Duration::from_secs_f64(wait);
            let wait = self.model.states_wait.then_some(wait);
            Error::from_response(action, 400, "Throttling")
                .with_request_id("R-1")
                .with_retry_after(wait)
        })
    }

    async fn order(&self, action: &'static str, priority: Priority, volume: u32, takes: f64) {
        let takes = Duration::from_secs_f64(takes);
        let attempt = || {
            let order = move |state: &mut State| {
                state.ends.insert(volume, Instant::now() + takes);
            };
            let call = move || self.call(action, order);
            self.limiter.run(action, priority, hours(), call)
        };
        run(action, hours(), attempt).await.unwrap();
    }

    async fn describe(&self, ids: Vec<u32>) -> Response {
        let read = |state: &mut State| {
            let now = Instant::now();
            let known = ids.iter().filter_map(|id| {
                let state = usize::from(state.ends.get(id)? <= &now);
                Some(Row { id: *id, state })
            });
            Page::new(known.collect(), None)
        };
        let call = || self.call("DescribeDisks", read);
        let limiter = &self.limiter;
        limiter.run("DescribeDisks", Priority::Poll, hours(), call).await
    }
}

fn hours() -> Deadline {
    Deadline::after(Duration::from_hours(2))
}

/// Runs the lifecycles, and returns the seconds, the throttled calls, and the calls per volume.
async fn run_lifecycles(model: Model) -> (f64, usize, f64) {
    // The minutes of both clocks agree.
    let minute = Timestamp::from_second(1_800_000_000).unwrap();
    let clock = TokioClock::starting_at(minute + Duration::from_secs_f64(model.start));
    let cloud = Arc::new(Cloud {
        model,
        start: Instant::now(),
        limiter: RateLimiter::new(Arc::new(clock)),
        state: Mutex::new(State {
            meters: BTreeMap::new(),
            ends: BTreeMap::new(),
            calls: 0,
            throttled: 0,
            random: Random::new(),
        }),
    });
    let source = {
        let (ready, cloud) = (Arc::clone(&cloud), Arc::clone(&cloud));
        Source {
            ready: Box::new(move |deadline| {
                let cloud = Arc::clone(&ready);
                Box::pin(async move {
                    let limiter = &cloud.limiter;
                    limiter.ready("DescribeDisks", Priority::Poll, deadline).await
                })
            }),
            ..source(move |ids| {
                let cloud = Arc::clone(&cloud);
                async move { cloud.describe(ids).await }
            })
        }
    };
    let poller = Arc::new(Poller::new(Tasks::default(), source));
    let permits = Arc::new(Semaphore::new(50));
    let mut volumes = JoinSet::new();
    for volume in 0..model.volumes {
        let (cloud, poller) = (Arc::clone(&cloud), Arc::clone(&poller));
        let permits = Arc::clone(&permits);
        volumes.spawn(async move {
            let _permit = permits.acquire().await.unwrap();
            for (action, priority, operation, takes) in [
                ("CreateDisk", Priority::Write, Operation::Create, 0.5),
                ("AttachDisk", Priority::Attach, Operation::Attach, 2.0),
                ("DetachDisk", Priority::Detach, Operation::Detach, 2.0),
            ] {
                cloud.order(action, priority, volume, takes).await;
                let done = poller.wait_until_done(&volume, hours(), operation, at_least(1));
                done.await.unwrap();
            }
            cloud.order("DeleteDisk", Priority::Write, volume, 0.0).await;
        });
    }
    volumes.join_all().await;
    let seconds = cloud.start.elapsed().as_secs_f64();
    let state = cloud.state.lock().unwrap();
    let each = state.calls as f64 / f64::from(model.volumes);
    (seconds, state.throttled, each)
}

const NONE: (f64, f64) = (0.001, 0.0);
const SHORT: (f64, f64) = (0.06, 0.0);
const LONG: (f64, f64) = (0.3, 0.0);
const VARYING: (f64, f64) = (0.06, 0.6);

/// Runs the lifecycles from several phases of the window, and checks the time and the number of throttled calls.
async fn check(volumes: u32, quota: Quota, latency: (f64, f64), seconds: f64, throttled: usize) {
    let window = match quota {
        Quota::Window(_, window) | Quota::Sliding(_, window) => window,
        Quota::Bucket(..) => 1.0,
    };
    for (phase, states_wait) in [(0.0, false), (0.6, true), (0.6, false), (0.95, false)] {
        let model = Model {
            volumes,
            quota,
            start: (1e4 + phase) * window,
            latency,
            states_wait,
        };
        let (took, bad, each) = run_lifecycles(model).await;
        println!("{model:?}: {took:.1} s, {bad} throttled, {each:.1} calls per volume");
        assert!(took <= seconds, "{model:?}: {took} s");
        assert!(bad <= throttled, "{model:?}: {bad} throttled");
    }
}

#[tokio::test(start_paused = true)]
async fn windows_of_a_second_cost_little_time() {
    check(500, Quota::Window(10, 1.0), NONE, 60.0, 25).await;
    check(500, Quota::Window(10, 1.0), SHORT, 63.0, 30).await;
    check(100, Quota::Window(2, 1.0), NONE, 60.0, 30).await;
}

#[tokio::test(start_paused = true)]
async fn windows_of_several_seconds_cost_little_time() {
    for latency in [NONE, VARYING, LONG] {
        check(100, Quota::Window(35, 7.0), latency, 35.0, 60).await;
        check(250, Quota::Window(20, 3.0), latency, 55.0, 70).await;
        check(250, Quota::Window(50, 10.0), latency, 65.0, 75).await;
        check(250, Quota::Window(100, 20.0), latency, 70.0, 75).await;
    }
}

#[tokio::test(start_paused = true)]
async fn windows_of_minutes_are_used_up() {
    check(100, Quota::Window(60, 60.0), NONE, 78.0, 30).await;
    check(400, Quota::Window(200, 60.0), SHORT, 90.0, 40).await;
    check(250, Quota::Window(200, 300.0), SHORT, 320.0, 75).await;
    check(200, Quota::Window(150, 3600.0), SHORT, 3660.0, 250).await;
}

#[tokio::test(start_paused = true)]
async fn quotas_that_slide_or_refill_are_used_up() {
    for latency in [NONE, VARYING] {
        check(250, Quota::Sliding(35, 7.0), latency, 75.0, 60).await;
        check(100, Quota::Sliding(60, 60.0), latency, 120.0, 50).await;
        check(150, Quota::Bucket(60.0, 1.0), latency, 105.0, 60).await;
        check(250, Quota::Bucket(20.0, 5.0), latency, 56.0, 60).await;
    }
}
