//! Disks and snapshots that Kubernetes does not use, counted periodically as by `diskplugin orphans`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use super::{Gauges, Samples};
use crate::base::{error_chain, lock};
use crate::ops::orphans::{Class, Kind, Observer, Report, Rules, classify};
use crate::ops::value_name;

/// Time from the start to the first count: other work of a new controller is more urgent.
const FIRST: Duration = Duration::from_secs(60);

/// Number and bytes of the resources.
type Sums = BTreeMap<(Class, Kind), (u64, u64)>;

/// Clones share the state.
#[derive(Debug, Clone, Default)]
pub(crate) struct OrphanMetrics(Arc<Mutex<Sums>>);

impl OrphanMetrics {
    fn set(&self, report: &Report) {
        let mut sums = Sums::new();
        for finding in &report.findings {
            let (count, sum) = sums.entry((finding.class, finding.kind)).or_default();
            *count += 1;
            *sum = sum.saturating_add(finding.size.map_or(0, |size| size.bytes().0));
        }
        *lock(&self.0) = sums;
    }
}

#[async_trait]
impl Gauges for OrphanMetrics {
    async fn read(&self, to: &mut Samples) {
        let sums = lock(&self.0);
        for ((class, kind), (count, bytes)) in sums.iter() {
            let (class, kind) = (value_name(class), value_name(kind));
            let labels = [("class", class.as_str()), ("kind", kind.as_str())];
            to.set("orphans", labels, *count);
            to.set("orphans_capacity", labels, *bytes);
        }
    }
}

/// Counts periodically: disks and snapshots of the cluster are listed, and volumes of Kubernetes.
pub(crate) async fn count_orphans(metrics: OrphanMetrics, observer: Observer, rules: Rules, interval: Duration) {
    tokio::time::sleep(FIRST.min(interval)).await;
    loop {
        let counted = async {
            let observed = observer.observe().await.map_err(|error| error_chain(&error))?;
            classify(&observed, &rules).map_err(|error| error.to_string())
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
