//! Disks and snapshots that Kubernetes does not use, counted periodically as by `diskplugin orphans`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::base::error_chain;
use crate::ops::orphans::{Observer, Report, Rules, classify};
use crate::telemetry::catalog::register;

/// Time from the start to the first count: other work of a new controller is more urgent.
const FIRST: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct Labels {
    class: String,
    kind: String,
}

/// Clones share the state.
#[derive(Debug, Clone, Default)]
pub(crate) struct OrphanMetrics {
    resources: Family<Labels, Gauge>,
    capacity: Family<Labels, Gauge>,
    counted: Arc<Mutex<BTreeSet<Labels>>>,
}

impl OrphanMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        register(registry, "orphans", self.resources.clone());
        register(registry, "orphans_capacity", self.capacity.clone());
    }

    fn set(&self, report: &Report) {
        let mut sums: BTreeMap<Labels, (i64, i64)> = BTreeMap::new();
        for finding in &report.findings {
            let labels = Labels {
                class: finding.class.to_string(),
                kind: finding.kind.to_string(),
            };
            let (count, sum) = sums.entry(labels).or_default();
            *count += 1;
            let bytes = finding.size.map_or(0, |size| size.bytes().0);
            *sum = sum.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
        // A scrape at the same time must not miss what was counted before and now.
        for (labels, (count, bytes)) in &sums {
            self.resources.get_or_create(labels).set(*count);
            self.capacity.get_or_create(labels).set(*bytes);
        }
        let now: BTreeSet<_> = sums.into_keys().collect();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        for gone in counted.difference(&now) {
            self.resources.remove(gone);
            self.capacity.remove(gone);
        }
        *counted = now;
    }
}

/// Counts periodically: disks and snapshots of the cluster are listed, and volumes of Kubernetes.
pub(crate) async fn count_orphans(metrics: OrphanMetrics, observer: Observer, rules: Rules, interval: Duration) {
    tokio::time::sleep(FIRST.min(interval)).await;
    loop {
        let counted = async {
            let observed = observer.observe().await.map_err(|error| error_chain(&error))?;
            classify(&observed, &rules).map_err(|error| error_chain(&error))
        };
        match counted.await {
            Ok(report) => metrics.set(&report),
            Err(error) => {
                tracing::warn!("unused disks were not counted, and the last count remains: {error}");
            }
        }
        tokio::time::sleep(interval).await;
    }
}
