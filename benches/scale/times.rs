//! The durations of RPCs, from the first attempt to success.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tonic::Code;

/// Percentiles in seconds.
#[derive(Debug, Clone, Copy, Default, serde::Serialize)]
pub(crate) struct Percentiles {
    pub(crate) count: usize,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// Times and failures by RPC. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    times: BTreeMap<&'static str, Vec<f64>>,
    failures: BTreeMap<String, u64>,
}

impl Times {
    pub(crate) fn succeeded(&self, rpc: &'static str, time: Duration) {
        let time = time.as_secs_f64();
        self.lock().times.entry(rpc).or_default().push(time);
    }

    pub(crate) fn failed(&self, rpc: &'static str, code: Code) {
        let failure = format!("{rpc} {code:?}");
        *self.lock().failures.entry(failure).or_default() += 1;
    }

    /// Takes the measured values.
    pub(crate) fn take(&self) -> (BTreeMap<&'static str, Percentiles>, BTreeMap<String, u64>) {
        let state = std::mem::take(&mut *self.lock());
        let times = state.times.into_iter();
        let percentiles = times.map(|(rpc, times)| (rpc, percentiles(times)));
        (percentiles.collect(), state.failures)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By nearest rank.
pub(crate) fn percentiles(mut times: Vec<f64>) -> Percentiles {
    times.sort_unstable_by(f64::total_cmp);
    let rank = |percent: usize| {
        let rank = (times.len() * percent).div_ceil(100).max(1);
        times.get(rank - 1).copied().unwrap_or_default()
    };
    Percentiles {
        count: times.len(),
        p50: rank(50),
        p99: rank(99),
    }
}
