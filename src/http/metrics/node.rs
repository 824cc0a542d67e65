//! Gauges of a node: its volume limit, and usage, health and I/O of its volumes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Gauges, Samples};
use crate::base::Deadline;
use crate::linux::IoStatistics;
use crate::node::{Amount, NodeServices, StagedVolume, Usage, VolumeUsage};

/// Timeout of the measurements of one scrape. Prometheus waits for 10 s by default.
const TIMEOUT: Duration = Duration::from_secs(7);

#[derive(Debug)]
pub(crate) struct NodeGauges(pub(crate) Arc<NodeServices>);

#[async_trait]
impl Gauges for NodeGauges {
    async fn read(&self, to: &mut Samples) {
        let (deadline, node) = (Deadline::after(TIMEOUT), &self.0);
        let info = deadline.bound(node.info.info()).await;
        let limit = info.ok().and_then(Result::ok);
        let limit = limit.and_then(|info| info.max_volumes);
        let volumes = node.health.staged_volumes(deadline).await;
        let staged = u64::try_from(volumes.len()).unwrap_or(u64::MAX);
        to.set("node_volumes_staged", [], staged);
        if let Some(limit) = limit.map(u64::from) {
            let source = match node.info.is_limit_configured() {
                true => "setting",
                false => "instance_type",
            };
            to.set("node_volume_limit", [("source", source)], limit);
            to.set("node_volumes_free", [], limit.saturating_sub(staged));
        }
        for volume in &volumes {
            add_volume(volume, to);
        }
    }
}

fn add_volume(volume: &StagedVolume, to: &mut Samples) {
    let disk = ("disk_id", volume.id.as_str());
    if let Some(io) = volume.io {
        add_io(disk, io, to);
    }
    let Some(stats) = &volume.stats else { return };
    for issue in &stats.health_issues {
        to.set("volume_unhealthy", [disk, ("reason", &issue.reason)], 1_u64);
    }
    match stats.usage {
        Some(VolumeUsage::Filesystem(Usage { bytes, inodes })) => {
            add_amount("volume_capacity", disk, bytes, to);
            add_amount("volume_inodes", disk, inodes, to);
        }
        Some(VolumeUsage::Device(size)) => to.set("volume_capacity", [disk, ("kind", "total")], size.0),
        None => {}
    }
}

fn add_amount(metric: &'static str, disk: (&'static str, &str), amount: Amount, to: &mut Samples) {
    to.set(metric, [disk, ("kind", "total")], amount.total);
    to.set(metric, [disk, ("kind", "used")], amount.used);
    to.set(metric, [disk, ("kind", "available")], amount.available);
}

fn add_io(disk: (&'static str, &str), io: IoStatistics, to: &mut Samples) {
    let seconds = |milliseconds: u64| Duration::from_millis(milliseconds).as_secs_f64();
    for (direction, operations, bytes, milliseconds) in [
        ("read", io.reads, io.read_bytes, io.read_milliseconds),
        ("write", io.writes, io.written_bytes, io.write_milliseconds),
    ] {
        let labels = [disk, ("direction", direction)];
        to.set("volume_io_operations", labels, operations);
        to.set("volume_io_transferred", labels, bytes);
        to.set("volume_io_time", labels, seconds(milliseconds));
    }
    to.set("volume_io_busy", [disk], seconds(io.busy_milliseconds));
    to.set("volume_io_in_flight", [disk], io.in_flight);
}
