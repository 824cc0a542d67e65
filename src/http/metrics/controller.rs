//! Gauges of the controller: rate limits, queues, stock-outs, credentials, volumes.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use async_trait::async_trait;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Gauges;
use super::InventoryMetrics;
use crate::base::Deadline;
use crate::disk::DiskServices;
use crate::http::health::CloudAccess;
use crate::telemetry::catalog::register;

/// Timeout for the credentials: a scrape must not wait for their source.
const CREDENTIALS_TIMEOUT: Duration = Duration::from_secs(1);

type FloatGauge = Gauge<f64, AtomicU64>;

/// The labels of a metric that can be missing.
type NoLabels = Vec<(String, String)>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActionLabels {
    action: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    operation: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StockoutLabels {
    zone: String,
    category: String,
}

#[derive(Debug)]
pub(crate) struct ControllerGauges {
    disks: Arc<DiskServices>,
    cloud: CloudAccess,
    inventory: InventoryMetrics,
    waiting: Family<ActionLabels, Gauge>,
    in_flight: Family<ActionLabels, Gauge>,
    rate: Family<ActionLabels, FloatGauge>,
    configured: Family<ActionLabels, FloatGauge>,
    closed: Family<ActionLabels, FloatGauge>,
    queued: Family<OperationLabels, Gauge>,
    running: Family<OperationLabels, Gauge>,
    longest: Family<OperationLabels, Gauge>,
    stockouts: Family<StockoutLabels, Gauge>,
    credentials: Family<NoLabels, FloatGauge>,
    outage: FloatGauge,
}

impl ControllerGauges {
    pub(crate) fn new(disks: Arc<DiskServices>, cloud: CloudAccess, inventory: InventoryMetrics) -> Self {
        Self {
            disks,
            cloud,
            inventory,
            waiting: Family::default(),
            in_flight: Family::default(),
            rate: Family::default(),
            configured: Family::default(),
            closed: Family::default(),
            queued: Family::default(),
            running: Family::default(),
            longest: Family::default(),
            stockouts: Family::default(),
            credentials: Family::default(),
            outage: Gauge::default(),
        }
    }

    fn update_limits(&self) {
        self.rate.clear();
        self.configured.clear();
        self.closed.clear();
        for limit in self.cloud.rate_limiter.report() {
            let labels = ActionLabels { action: limit.action };
            let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
            self.waiting.get_or_create(&labels).set(count(limit.waiting));
            self.in_flight.get_or_create(&labels).set(limit.in_flight.into());
            if let Some(rate) = limit.configured {
                self.configured.get_or_create(&labels).set(rate);
            }
            if let Some(rate) = limit.learned {
                self.rate.get_or_create(&labels).set(rate);
            }
            let closed = limit.closed_for.unwrap_or_default();
            self.closed.get_or_create(&labels).set(closed.as_secs_f64());
        }
    }

    fn update_queues(&self) {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        for queue in self.disks.attacher.queues() {
            let labels = OperationLabels {
                operation: queue.operation,
            };
            self.queued.get_or_create(&labels).set(count(queue.waiting));
            self.running.get_or_create(&labels).set(count(queue.running));
            self.longest.get_or_create(&labels).set(count(queue.longest));
        }
    }

    async fn update_credentials(&self) {
        self.credentials.clear();
        let provided = Deadline::after(CREDENTIALS_TIMEOUT).bound(self.cloud.provider.provide());
        let Ok(Ok(credentials)) = provided.await else {
            // Expired, or about to be: without any, no call succeeds.
            self.credentials.get_or_create(&NoLabels::new()).set(0.0);
            return;
        };
        if let Some(expires) = credentials.expires {
            let left = expires.duration_since(self.cloud.clock.now()).as_secs_f64();
            self.credentials.get_or_create(&NoLabels::new()).set(left.max(0.0));
        }
    }
}

#[async_trait]
impl Gauges for ControllerGauges {
    fn register(&self, registry: &mut Registry) {
        register(registry, "cloud_calls_waiting", self.waiting.clone());
        register(registry, "cloud_calls_in_flight", self.in_flight.clone());
        register(registry, "cloud_quota_calls_per_second", self.rate.clone());
        register(registry, "cloud_configured_calls_per_second", self.configured.clone());
        register(registry, "cloud_throttled_remaining", self.closed.clone());
        register(registry, "cloud_outage", self.outage.clone());
        register(registry, "credentials_remaining", self.credentials.clone());
        register(registry, "attach_queue_waiting", self.queued.clone());
        register(registry, "attach_queue_running", self.running.clone());
        register(registry, "attach_queue_longest", self.longest.clone());
        register(registry, "stockout", self.stockouts.clone());
        self.inventory.register(registry);
    }

    async fn update(&self) {
        self.update_limits();
        self.update_queues();
        self.inventory.update();
        self.stockouts.clear();
        for (zone, category) in self.disks.provisioner.stockouts() {
            let labels = StockoutLabels {
                zone: zone.map_or_else(|| "region".to_owned(), |zone| zone.to_string()),
                category: category.map_or_else(|| "any".to_owned(), |one| one.to_string()),
            };
            self.stockouts.get_or_create(&labels).set(1);
        }
        let duration = self.cloud.api_health.report().outage_duration();
        self.outage.set(duration.as_secs_f64());
        self.update_credentials().await;
    }
}
