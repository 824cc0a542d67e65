//! Gauges of a node: its volume limit, and usage, health and I/O of its volumes.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use async_trait::async_trait;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Gauges;
use crate::base::Deadline;
use crate::linux::IoStatistics;
use crate::node::{Amount, NodeServices, StagedVolume, Usage, VolumeUsage};
use crate::telemetry::catalog::register;

/// Timeout of the measurements of one scrape. Prometheus waits for 10 s by default.
const TIMEOUT: Duration = Duration::from_secs(7);

/// The labels of a metric that can be missing.
type NoLabels = Vec<(String, String)>;

type FloatCounter = Counter<f64, AtomicU64>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DiskLabels {
    disk_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AmountLabels {
    disk_id: String,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct IoLabels {
    disk_id: String,
    direction: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HealthLabels {
    disk_id: String,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    source: &'static str,
}

#[derive(Debug)]
pub(crate) struct NodeGauges {
    node: Arc<NodeServices>,
    limit: Family<LimitLabels, Gauge>,
    staged: Gauge,
    free: Family<NoLabels, Gauge>,
    bytes: Family<AmountLabels, Gauge>,
    inodes: Family<AmountLabels, Gauge>,
    unhealthy: Family<HealthLabels, Gauge>,
    operations: Family<IoLabels, Counter>,
    transferred: Family<IoLabels, Counter>,
    time: Family<IoLabels, FloatCounter>,
    busy: Family<DiskLabels, FloatCounter>,
    in_flight: Family<DiskLabels, Gauge>,
}

impl NodeGauges {
    pub(crate) fn new(node: Arc<NodeServices>) -> Self {
        Self {
            node,
            limit: Family::default(),
            staged: Gauge::default(),
            free: Family::default(),
            bytes: Family::default(),
            inodes: Family::default(),
            unhealthy: Family::default(),
            operations: Family::default(),
            transferred: Family::default(),
            time: Family::default(),
            busy: Family::default(),
            in_flight: Family::default(),
        }
    }

    /// Volumes that were unstaged have no metrics any more.
    fn clear(&self) {
        self.limit.clear();
        self.free.clear();
        self.bytes.clear();
        self.inodes.clear();
        self.unhealthy.clear();
        self.operations.clear();
        self.transferred.clear();
        self.time.clear();
        self.busy.clear();
        self.in_flight.clear();
    }

    fn set_volume(&self, volume: &StagedVolume) {
        let disk_id = volume.id.to_string();
        if let Some(io) = volume.io {
            self.set_io(&disk_id, io);
        }
        let Some(stats) = &volume.stats else { return };
        for issue in &stats.health_issues {
            let labels = HealthLabels {
                disk_id: disk_id.clone(),
                reason: issue.reason(),
            };
            self.unhealthy.get_or_create(&labels).set(1);
        }
        match stats.usage {
            Some(VolumeUsage::Filesystem(Usage { bytes, inodes })) => {
                set_amount(&self.bytes, &disk_id, bytes);
                set_amount(&self.inodes, &disk_id, inodes);
            }
            Some(VolumeUsage::Device(size)) => {
                let labels = AmountLabels { disk_id, kind: "total" };
                self.bytes.get_or_create(&labels).set(integer(size.0));
            }
            None => {}
        }
    }

    fn set_io(&self, disk_id: &str, io: IoStatistics) {
        let seconds = |milliseconds: u64| Duration::from_millis(milliseconds).as_secs_f64();
        for (direction, operations, bytes, milliseconds) in [
            ("read", io.reads, io.read_bytes, io.read_milliseconds),
            ("write", io.writes, io.written_bytes, io.write_milliseconds),
        ] {
            let labels = IoLabels {
                disk_id: disk_id.to_owned(),
                direction,
            };
            self.operations.get_or_create(&labels).inc_by(operations);
            self.transferred.get_or_create(&labels).inc_by(bytes);
            self.time.get_or_create(&labels).inc_by(seconds(milliseconds));
        }
        let labels = DiskLabels {
            disk_id: disk_id.to_owned(),
        };
        self.busy.get_or_create(&labels).inc_by(seconds(io.busy_milliseconds));
        self.in_flight.get_or_create(&labels).set(integer(io.in_flight));
    }
}

#[async_trait]
impl Gauges for NodeGauges {
    fn register(&self, registry: &mut Registry) {
        register(registry, "node_volume_limit", self.limit.clone());
        register(registry, "node_volumes_staged", self.staged.clone());
        register(registry, "node_volumes_free", self.free.clone());
        register(registry, "volume_capacity", self.bytes.clone());
        register(registry, "volume_inodes", self.inodes.clone());
        register(registry, "volume_unhealthy", self.unhealthy.clone());
        register(registry, "volume_io_operations", self.operations.clone());
        register(registry, "volume_io_transferred", self.transferred.clone());
        register(registry, "volume_io_time", self.time.clone());
        register(registry, "volume_io_busy", self.busy.clone());
        register(registry, "volume_io_in_flight", self.in_flight.clone());
    }

    async fn update(&self) {
        let deadline = Deadline::after(TIMEOUT);
        let info = deadline.bound(self.node.info.info()).await;
        let limit = info.ok().and_then(Result::ok);
        let limit = limit.and_then(|info| info.max_volumes);
        let volumes = self.node.health.staged_volumes(deadline).await;
        self.clear();
        let staged = i64::try_from(volumes.len()).unwrap_or(i64::MAX);
        self.staged.set(staged);
        if let Some(limit) = limit.map(i64::from) {
            let source = match self.node.info.is_limit_configured() {
                true => "setting",
                false => "instance_type",
            };
            let limits = self.limit.get_or_create(&LimitLabels { source });
            limits.set(limit);
            let free = self.free.get_or_create(&NoLabels::new());
            free.set((limit - staged).max(0));
        }
        for volume in &volumes {
            self.set_volume(volume);
        }
    }
}

fn set_amount(gauges: &Family<AmountLabels, Gauge>, disk_id: &str, amount: Amount) {
    for (kind, value) in [
        ("total", amount.total),
        ("used", amount.used),
        ("available", amount.available),
    ] {
        let labels = AmountLabels {
            disk_id: disk_id.to_owned(),
            kind,
        };
        gauges.get_or_create(&labels).set(integer(value));
    }
}

fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
