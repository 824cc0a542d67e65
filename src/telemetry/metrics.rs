//! Metrics of RPCs, their phases and cloud calls. Label values that a peer chooses are limited in number.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::catalog::register;
use crate::base::lock;

/// Seconds: RPCs that find nothing to do take milliseconds; attaching under a strict quota, or mkfs, takes minutes.
const RPC_BUCKETS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// Seconds: a cloud call takes 60 to 300 ms, and at most 15 s.
const CLOUD_BUCKETS: [f64; 9] = [0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 5.0, 15.0];

/// Resources per poll: at most 100.
const BATCH_BUCKETS: [f64; 7] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0];

/// The codes that the cloud returns in practice are fewer.
const MAX_CODES: usize = 64;

/// The method of work that no call waits for, or that several calls share.
const BACKGROUND: &str = "background";

/// Names and values of the labels of a metric.
type Labels<const N: usize> = [(&'static str, String); N];

/// The labels of an exemplar, which together have at most 128 characters (OpenMetrics 1.0, Exemplars).
type ExemplarLabels = Vec<(&'static str, String)>;

/// The value of a label for all others.
const OTHER: &str = "other";

/// The methods of CSI and of kubelet's plugin registration.
const METHODS: &[&str] = include!(concat!(env!("OUT_DIR"), "/methods.rs"));

type Buckets<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;
type ExemplarBuckets =
    Family<Labels<2>, HistogramWithExemplars<ExemplarLabels>, fn() -> HistogramWithExemplars<ExemplarLabels>>;

/// Clones share the state.
#[derive(Debug, Clone)]
pub(crate) struct CallMetrics {
    rpcs: ExemplarBuckets,
    running: Family<Labels<1>, Gauge>,
    phases: Buckets<2>,
    cloud_calls: ExemplarBuckets,
    throttled: Family<Labels<1>, Counter>,
    batches: Buckets<1>,
    /// The first codes; further ones count as [`OTHER`].
    codes: Arc<Mutex<BTreeSet<String>>>,
}

impl Default for CallMetrics {
    fn default() -> Self {
        Self {
            rpcs: Family::new_with_constructor(|| HistogramWithExemplars::new(RPC_BUCKETS.into_iter())),
            running: Family::default(),
            phases: Family::new_with_constructor(|| Histogram::new(RPC_BUCKETS)),
            cloud_calls: Family::new_with_constructor(|| HistogramWithExemplars::new(CLOUD_BUCKETS.into_iter())),
            throttled: Family::default(),
            batches: Family::new_with_constructor(|| Histogram::new(BATCH_BUCKETS)),
            codes: Arc::default(),
        }
    }
}

/// The sum of the characters of the labels of an exemplar is limited to 128.
const MAX_EXEMPLAR_ID: usize = 48;

/// The IDs that connect a measurement with logs and traces.
fn exemplar(request_id: Option<&str>, trace_id: Option<&str>) -> Option<ExemplarLabels> {
    let ids = [("request_id", request_id), ("trace_id", trace_id)];
    let ids = ids.into_iter().filter_map(|(name, id)| {
        let id = id.filter(|id| id.len() <= MAX_EXEMPLAR_ID && id.is_ascii())?;
        Some((name, id.to_owned()))
    });
    let labels: ExemplarLabels = ids.collect();
    (!labels.is_empty()).then_some(labels)
}

impl CallMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        register(registry, "rpc_duration", self.rpcs.clone());
        register(registry, "rpcs_in_flight", self.running.clone());
        register(registry, "rpc_phase_duration", self.phases.clone());
        register(registry, "cloud_call_duration", self.cloud_calls.clone());
        register(registry, "cloud_calls_throttled", self.throttled.clone());
        register(registry, "poll_batch_size", self.batches.clone());
    }

    /// The method as a label value.
    pub(super) fn method(&self, name: &str) -> String {
        let is_known = METHODS.contains(&name);
        if is_known { name } else { OTHER }.to_owned()
    }

    /// The code of the cloud as a label value.
    fn code(&self, code: &str) -> String {
        let mut codes = lock(&self.codes);
        if codes.len() < MAX_CODES {
            codes.insert(code.to_owned());
        }
        if codes.contains(code) { code } else { OTHER }.to_owned()
    }

    pub(super) fn rpc_started(&self, method: &str) {
        self.running.get_or_create(&[("method", method.to_owned())]).inc();
    }

    pub(super) fn rpc_ended(&self, method: &str, code: &str, elapsed: Duration, trace_id: Option<&str>) {
        let (method, code) = (("method", method.to_owned()), ("code", code.to_owned()));
        self.running.get_or_create(std::array::from_ref(&method)).dec();
        let rpcs = self.rpcs.get_or_create(&[method, code]);
        rpcs.observe(elapsed.as_secs_f64(), exemplar(None, trace_id), None);
    }

    pub(super) fn phase_ended(&self, method: Option<&str>, phase: &str, elapsed: Duration) {
        let method = method.unwrap_or(BACKGROUND).to_owned();
        let labels = [("method", method), ("phase", phase.to_owned())];
        self.phases.get_or_create(&labels).observe(elapsed.as_secs_f64());
    }

    pub(super) fn cloud_call_ended(
        &self,
        action: &str,
        code: &str,
        is_throttled: bool,
        elapsed: Duration,
        (request_id, trace_id): (Option<&str>, Option<&str>),
    ) {
        let action = ("action", action.to_owned());
        if is_throttled {
            self.throttled.get_or_create(std::array::from_ref(&action)).inc();
        }
        let labels = [action, ("code", self.code(code))];
        let calls = self.cloud_calls.get_or_create(&labels);
        calls.observe(elapsed.as_secs_f64(), exemplar(request_id, trace_id), None);
    }

    pub(super) fn poll_sent(&self, action: &str, size: f64) {
        let labels = [("action", action.to_owned())];
        self.batches.get_or_create(&labels).observe(size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_of_the_protocols_is_known() {
        let protocols = [
            include_str!("../../proto/csi.proto"),
            include_str!("../../proto/pluginregistration.proto"),
        ];
        let lines = protocols.iter().flat_map(|text| text.lines());
        let methods = lines.filter_map(|line| line.trim().strip_prefix("rpc ")?.split_once(['(', ' ']));
        let methods: BTreeSet<_> = methods.map(|(name, _)| name).collect();
        assert_eq!(methods, METHODS.iter().copied().collect());
    }

    #[test]
    fn codes_beyond_the_limit_count_as_other() {
        let metrics = CallMetrics::default();
        for number in 0..MAX_CODES {
            let code = format!("Code{number}");
            assert_eq!(metrics.code(&code), code);
        }
        assert_eq!(metrics.code("Another"), OTHER);
        assert_eq!(metrics.code("Code0"), "Code0");
    }
}
