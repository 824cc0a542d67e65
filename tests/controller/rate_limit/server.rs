//! A server with quotas. It shares no code with the rate limiter.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use diskplugin::base::Clock;
use ecs::{Error, Result};

/// A second at which a minute begins.
const MINUTE: i64 = 1_800_000_000;

/// How calls are counted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    Unlimited,
    /// `N/Ts`: so many calls in each window of the server's clock.
    Window(u32, i64),
    /// So many calls in any period of this length.
    Sliding(u32, i64),
    /// Capacity and refill per second.
    Bucket(f64, f64),
}

/// The latency of the network per call, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Latency {
    Fixed(u64),
    /// Median and sigma.
    Lognormal(f64, f64),
}

#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) rule: Rule,
    /// Rules of some actions.
    pub(crate) actions: &'static [(&'static str, Rule)],
    /// One rule for all calls together; the error code is `Throttling.User`.
    pub(crate) account: Rule,
    pub(crate) latency: Latency,
    /// Where the random latencies begin.
    pub(crate) seed: u64,
    /// How far the server's clock is ahead.
    pub(crate) skew_ms: i64,
    /// How long the minute has lasted at the start.
    pub(crate) start_second: i64,
    /// The pause between polls.
    pub(crate) poll_gap_ms: u64,
    /// Whether throttling errors state how long to wait.
    pub(crate) states_wait: bool,
}

impl Config {
    pub(crate) fn of(rule: Rule) -> Self {
        Self {
            rule,
            actions: &[],
            account: Rule::Unlimited,
            latency: Latency::Fixed(2),
            seed: 7,
            skew_ms: 0,
            start_second: 4,
            poll_gap_ms: 200,
            states_wait: false,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) config: Config,
    start: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    meters: BTreeMap<&'static str, Meter>,
    log: Vec<Entry>,
    random: u64,
}

#[derive(Debug, Default)]
struct Meter {
    window: i64,
    used: u32,
    recent: VecDeque<i64>,
    level: Option<f64>,
    at_ms: i64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) action: &'static str,
    pub(crate) throttled: bool,
}

/// The client's clock.
#[derive(Debug)]
pub(crate) struct ClientClock(Instant, i64);

impl Clock for ClientClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(MINUTE + self.1).unwrap() + self.0.elapsed()
    }
}

impl Server {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        let start = Instant::now();
        let random = config.seed;
        let state = Mutex::new(State {
            random,
            ..State::default()
        });
        Arc::new(Self { config, start, state })
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(ClientClock(self.start, self.config.start_second))
    }

    pub(crate) async fn call(&self, action: &'static str) -> Result<()> {
        tokio::time::sleep(self.delay()).await;
        let outcome = self.admit(action, true);
        tokio::time::sleep(self.delay()).await;
        outcome
    }

    /// Counts a call or refuses it.
    pub(crate) fn admit(&self, action: &'static str, is_ours: bool) -> Result<()> {
        let at = self.start.elapsed();
        let now =
            (MINUTE + self.config.start_second) * 1000 + i64::try_from(at.as_millis()).unwrap() + self.config.skew_ms;
        let own = self.config.actions.iter().find(|(name, _)| *name == action);
        let rule = own.map_or(self.config.rule, |(_, rule)| *rule);
        let mut state = self.state.lock().unwrap();
        let by_api = state.meters.entry(action).or_default().take(rule, now);
        let outcome = match by_api {
            Err(wait) => Err(("Throttling", wait)),
            Ok(()) => state
                .meters
                .entry("account")
                .or_default()
                .take(self.config.account, now)
                .map_err(|wait| ("Throttling.User", wait)),
        };
        if is_ours {
            let throttled = outcome.is_err();
            state.log.push(Entry { action, throttled });
        }
        outcome.map_err(|(code, wait)| {
            let wait = Duration::from_millis(u64::try_from(wait).unwrap());
            Error::from_response(action, 400, code)
                .with_request_id("R-1")
                .with_retry_after(self.config.states_wait.then_some(wait))
        })
    }

    fn delay(&self) -> Duration {
        match self.config.latency {
            Latency::Fixed(ms) => Duration::from_micros(ms * 500),
            Latency::Lognormal(median, sigma) => {
                let (a, b) = (self.random(), self.random());
                let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
                Duration::from_secs_f64(median / 2000.0 * (sigma * normal).exp())
            }
        }
    }

    /// A number above 0 and up to 1.
    pub(crate) fn random(&self) -> f64 {
        let mut state = self.state.lock().unwrap();
        state.random = state.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        f64::from(u32::try_from(state.random >> 33).unwrap() + 1) / f64::from(1_u32 << 31)
    }

    pub(crate) fn log(&self) -> Vec<Entry> {
        self.state.lock().unwrap().log.clone()
    }

    pub(crate) fn throttled(&self) -> usize {
        self.log().iter().filter(|entry| entry.throttled).count()
    }
}

impl Meter {
    /// Counts a call, or returns the milliseconds until one may pass.
    fn take(&mut self, rule: Rule, now: i64) -> std::result::Result<(), i64> {
        match rule {
            Rule::Unlimited => Ok(()),
            Rule::Window(limit, seconds) => {
                let window = now.div_euclid(seconds * 1000);
                if self.window != window {
                    (self.window, self.used) = (window, 0);
                }
                if self.used >= limit {
                    return Err((window + 1) * seconds * 1000 - now);
                }
                self.used += 1;
                Ok(())
            }
            Rule::Sliding(limit, seconds) => {
                self.recent.retain(|at| *at > now - seconds * 1000);
                if self.recent.len() >= usize::try_from(limit).unwrap() {
                    return Err(self.recent[0] + seconds * 1000 - now);
                }
                self.recent.push_back(now);
                Ok(())
            }
            Rule::Bucket(capacity, refill) => {
                let passed = f64::from(u32::try_from(now - self.at_ms).unwrap_or(u32::MAX)) / 1000.0;
                let level = self.level.map_or(capacity, |level| level + passed * refill);
                self.level = Some(level.min(capacity));
                self.at_ms = now;
                match self.level.as_mut().filter(|level| **level >= 1.0) {
                    Some(level) => {
                        *level -= 1.0;
                        Ok(())
                    }
                    None => Err(1000),
                }
            }
        }
    }
}
