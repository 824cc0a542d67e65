//! Durations of calls.

use std::collections::BTreeMap;
use std::time::Duration;

use tonic::Code;

/// The durations of successful calls by RPC, and the failures, of one run.
#[derive(Debug, Default)]
pub(crate) struct Timings {
    calls: BTreeMap<&'static str, Vec<Duration>>,
    failures: BTreeMap<(&'static str, String), u64>,
}

/// Percentiles of the durations of an RPC in seconds.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub(crate) struct Percentiles {
    pub(crate) calls: usize,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Timings {
    pub(crate) fn succeeded(&mut self, rpc: &'static str, time: Duration) {
        self.calls.entry(rpc).or_default().push(time);
    }

    pub(crate) fn failed(&mut self, rpc: &'static str, code: Code) {
        let count = self.failures.entry((rpc, format!("{code:?}")));
        *count.or_default() += 1;
    }

    pub(crate) fn percentiles(&self) -> BTreeMap<&'static str, Percentiles> {
        let of = |times: &Vec<Duration>| {
            let mut sorted = times.clone();
            sorted.sort_unstable();
            // Nearest rank.
            let rank = |percent: usize| {
                let rank = (sorted.len() * percent).div_ceil(100).max(1);
                sorted.get(rank - 1).copied().unwrap_or_default()
            };
            Percentiles {
                calls: sorted.len(),
                p50: rank(50).as_secs_f64(),
                p99: rank(99).as_secs_f64(),
            }
        };
        let calls = self.calls.iter();
        calls.map(|(rpc, times)| (*rpc, of(times))).collect()
    }

    /// Failed calls, each of which was retried, by RPC and code.
    pub(crate) fn failures(&self) -> BTreeMap<String, u64> {
        let failures = self.failures.iter();
        failures
            .map(|((rpc, code), count)| (format!("{rpc} {code}"), *count))
            .collect()
    }
}
