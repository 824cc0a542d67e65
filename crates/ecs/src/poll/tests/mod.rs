//! Tests of the schedule, of the sharing of polls, of failures, and of the lifecycle of volumes.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::source::{INTERVAL, Source};
use super::*;
use crate::action::Page;
use crate::base::{Deadline, Tasks};

mod failures;
mod overdue;
mod quotas;
mod schedule;
mod sharing;
mod simulation;

type Response = crate::Result<Page<Row<usize>>>;

#[derive(Debug)]
struct Row<T> {
    id: u32,
    state: T,
}

impl<T: std::fmt::Display> std::fmt::Display for Row<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.state.fmt(f)
    }
}

/// The describe calls so far: when, and the ids.
type Calls = Arc<Mutex<Vec<(Duration, Vec<u32>)>>>;

/// A deterministic generator of random numbers (xorshift).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn new() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }

    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A latency with this median in seconds, and sigma of its logarithm.
    fn latency(&mut self, (median, sigma): (f64, f64)) -> Duration {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.uniform()).cos();
        Duration::from_secs_f64(median * (sigma * normal).exp())
    }
}

fn deadline() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn rows<T: Copy>(keys: impl IntoIterator<Item = u32>, state: T) -> Page<Row<T>> {
    let rows = keys.into_iter().map(|id| Row { id, state });
    Page::new(rows.collect(), None)
}

/// A source in which the resources from 1000 are canaries.
fn source<T: 'static, F>(page: impl Fn(Vec<u32>) -> F + Send + Sync + 'static) -> Source<u32, Row<T>>
where
    F: Future<Output = crate::Result<Page<Row<T>>>> + Send + 'static,
{
    Source {
        action: "DescribeDisks",
        max_ids: MAX_IDS_PER_CALL,
        interval: INTERVAL,
        id: |row| row.id,
        ready: Box::new(|_| Box::pin(async { Some(Duration::ZERO) })),
        page: Box::new(move |keys, _| Box::pin(page(keys))),
        is_canary: Box::new(|row| row.id >= 1000),
        key: Box::new(|| 0),
    }
}

/// A poller of a cloud that responds to the n-th call with `respond(n, ids)`.
fn responding<F>(
    respond: impl Fn(usize, Vec<u32>) -> F + Send + Sync + 'static,
) -> (Arc<Poller<u32, Row<usize>>>, Calls)
where
    F: Future<Output = Response> + Send + 'static,
{
    let (calls, start) = (Calls::default(), Instant::now());
    let log = Arc::clone(&calls);
    let source = source(move |keys| {
        let mut log = log.lock().unwrap();
        log.push((start.elapsed(), keys.clone()));
        respond(log.len(), keys)
    });
    let poller = Poller::new(Tasks::default(), source);
    (Arc::new(poller), calls)
}

/// A poller of a cloud in which the state of every row is the number of calls so far.
fn counting() -> (Arc<Poller<u32, Row<usize>>>, Calls) {
    responding(|n, keys| async move { Ok(rows(keys, n)) })
}

fn at_least(n: usize) -> impl FnMut(Observation<Row<usize>>) -> Option<usize> {
    move |observation| match observation {
        Observation::Row(row) => (row.state >= n).then_some(row.state),
        Observation::Missing { .. } => None,
    }
}

fn sizes(calls: &Calls) -> Vec<usize> {
    calls.lock().unwrap().iter().map(|(_, keys)| keys.len()).collect()
}

fn times(calls: &Calls) -> Vec<u128> {
    let calls = calls.lock().unwrap();
    calls.iter().map(|(at, _)| at.as_millis()).collect()
}

async fn observe_all(poller: &Arc<Poller<u32, Row<usize>>>, keys: std::ops::Range<u32>) -> Vec<bool> {
    let mut observations = JoinSet::new();
    for key in keys {
        let poller = Arc::clone(poller);
        observations.spawn(async move { poller.observe(&key, deadline()).await.is_ok() });
    }
    observations.join_all().await
}
