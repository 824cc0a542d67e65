//! Gauges of the controller: rate limits, queues, stock-outs, credentials, volumes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{Gauges, InventoryMetrics, Samples};
use crate::base::Deadline;
use crate::cluster::lease::Leadership;
use crate::disk::DiskServices;
use crate::http::health::CloudAccess;
use crate::model::{Category, ZoneId};

/// Timeout for the credentials: a scrape must not wait for their source.
const CREDENTIALS_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether this replica is the leader.
#[derive(Debug)]
pub(crate) struct LeaderGauge(pub(crate) watch::Receiver<Leadership>);

#[derive(Debug, Clone)]
pub(crate) struct ControllerGauges {
    pub(crate) disks: Arc<DiskServices>,
    pub(crate) cloud: CloudAccess,
    pub(crate) inventory: InventoryMetrics,
}

impl ControllerGauges {
    /// The remaining lifetime of temporary credentials.
    async fn remaining(&self) -> Option<f64> {
        let provided = Deadline::after(CREDENTIALS_TIMEOUT).bound(self.cloud.provider.provide());
        let Ok(Ok(credentials)) = provided.await else {
            // Expired, or about to be: without any, no call succeeds.
            return Some(0.0);
        };
        let left = credentials.expires?.duration_since(self.cloud.clock.now());
        Some(left.as_secs_f64().max(0.0))
    }
}

#[async_trait]
impl Gauges for ControllerGauges {
    async fn read(&self, to: &mut Samples) {
        for limit in self.cloud.rate_limiter.report() {
            let action = [("action", limit.action)];
            to.set("cloud_calls_waiting", action, limit.waiting);
            to.set("cloud_calls_in_flight", action, u64::from(limit.in_flight));
            if let Some(rate) = limit.configured {
                to.set("cloud_configured_calls_per_second", action, rate);
            }
            if let Some(rate) = limit.learned {
                to.set("cloud_quota_calls_per_second", action, rate);
            }
            let closed = limit.closed_for.unwrap_or_default();
            to.set("cloud_throttled_remaining", action, closed.as_secs_f64());
        }
        for queue in self.disks.attacher.queues() {
            let operation = [("operation", queue.operation)];
            to.set("attach_queue_waiting", operation, queue.waiting);
            to.set("attach_queue_running", operation, queue.running);
            to.set("attach_queue_longest", operation, queue.longest);
        }
        self.inventory.read(to);
        for (zone, category) in self.disks.provisioner.stockouts() {
            let zone = zone.as_ref().map_or("region", ZoneId::as_str);
            let category = category.as_ref().map_or("any", Category::as_str);
            to.set("stockout", [("zone", zone), ("category", category)], 1_u64);
        }
        let outage = self.cloud.api_health.report().outage_duration();
        to.set("cloud_outage", [], outage.as_secs_f64());
        if let Some(seconds) = self.remaining().await {
            to.set("credentials_remaining", [], seconds);
        }
    }
}

#[async_trait]
impl Gauges for LeaderGauge {
    async fn read(&self, to: &mut Samples) {
        let is_leader = *self.0.borrow() == Leadership::Leader;
        to.set("leader", [], u64::from(is_leader));
    }
}
