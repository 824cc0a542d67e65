//! The volumes of the cluster by state and category, listed periodically.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::Samples;
use crate::base::{Clock, Deadline, LogOnce, SystemClock, error_chain, lock};
use crate::disk::{DiskServices, health_issues};
use crate::model::health::HealthIssue;
use crate::model::{Disk, DiskId, InstanceId};

/// Time from the start to the first listing.
const FIRST: Duration = Duration::from_secs(30);

/// Timeout of a listing.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The most unhealthy disks that are kept.
const MAX_UNHEALTHY: usize = 100;

/// The unhealthy disks of a listing, as far as the listing itself shows it.
#[derive(Debug, Clone)]
pub(crate) struct UnhealthyDisks {
    pub(crate) listed: Instant,
    pub(crate) disks: Vec<(DiskId, HealthIssue)>,
    /// Problems that are not kept.
    pub(crate) omitted: usize,
}

/// Clones share the state.
#[derive(Debug, Clone, Default)]
pub(crate) struct InventoryMetrics {
    last: Arc<Mutex<Option<Listing>>>,
}

/// The result of a listing.
#[derive(Debug, Clone)]
struct Listing {
    at: Timestamp,
    /// Number and bytes of the disks by state and category.
    volumes: BTreeMap<(String, String), (u64, u64)>,
    attachments: BTreeMap<InstanceId, u64>,
    unhealthy: UnhealthyDisks,
}

impl InventoryMetrics {
    pub(super) fn read(&self, to: &mut Samples) {
        let last = lock(&self.last);
        let listed = last.as_ref().map_or(0, |listing| listing.at.as_second());
        to.set("volumes_listed_timestamp", [], listed.unsigned_abs());
        let Some(listing) = last.as_ref() else { return };
        for ((state, category), (count, bytes)) in &listing.volumes {
            let labels = [("state", state.as_str()), ("category", category.as_str())];
            to.set("volumes", labels, *count);
            to.set("volumes_capacity", labels, *bytes);
        }
        for (node, count) in &listing.attachments {
            to.set("node_attachments_used", [("node_id", node.as_str())], *count);
        }
    }

    /// The unhealthy disks; none before the first listing.
    pub(crate) fn unhealthy(&self) -> Option<UnhealthyDisks> {
        let last = lock(&self.last);
        last.as_ref().map(|listing| listing.unhealthy.clone())
    }

    async fn list(&self, disks: &DiskServices) -> crate::disk::Result<()> {
        let item = |disk: &Disk| {
            let labels = (disk.status.to_string(), disk.category.to_string());
            let unhealthy: Vec<(DiskId, HealthIssue)> = health_issues(disk)
                .into_iter()
                .map(|issue| (disk.id.clone(), issue))
                .collect();
            let attachments = disk.attachments.clone();
            (labels, disk.size.bytes().0, attachments, unhealthy)
        };
        let rows = disks.inventory.list(Deadline::after(TIMEOUT), item).await?;
        let mut volumes: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
        let mut nodes: BTreeMap<InstanceId, u64> = BTreeMap::new();
        let mut unhealthy = Vec::new();
        for (labels, bytes, attachments, issues) in rows {
            unhealthy.extend(issues);
            let (count, sum) = volumes.entry(labels).or_default();
            *count += 1;
            *sum = sum.saturating_add(bytes);
            for node in attachments {
                *nodes.entry(node).or_default() += 1;
            }
        }
        let omitted = unhealthy.len().saturating_sub(MAX_UNHEALTHY);
        unhealthy.truncate(MAX_UNHEALTHY);
        let unhealthy = UnhealthyDisks {
            listed: Instant::now(),
            disks: unhealthy,
            omitted,
        };
        *lock(&self.last) = Some(Listing {
            at: SystemClock.now(),
            volumes,
            attachments: nodes,
            unhealthy,
        });
        Ok(())
    }
}

/// Lists the disks of the cluster periodically, one call per 100 disks.
pub(crate) async fn refresh(metrics: InventoryMetrics, disks: Arc<DiskServices>, interval: Duration) {
    // A controller that has just started lists the disks for other reasons.
    tokio::time::sleep(FIRST.min(interval)).await;
    let logged = LogOnce::default();
    loop {
        let error = metrics.list(&disks).await.err();
        let error = error.map_or_else(String::new, |error| error_chain(&error));
        if logged.should_log("listing", &error) {
            tracing::warn!("the disks cannot be listed for metrics, and the last counts remain: {error}");
        }
        tokio::time::sleep(interval).await;
    }
}
