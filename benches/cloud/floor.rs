//! The lower bound of the time of a row for any driver: the delays and quotas of the cloud, with four calls per volume.

use std::time::Duration;

use crate::row::{Instances, Latency, Quota, Row};

/// CreateDisk, AttachDisk, DetachDisk, DeleteDisk.
pub(crate) const CALLS: u32 = 4;

/// The floor of a run that starts this time after the beginning of a quota window.
pub(crate) fn floor(row: &Row, phase: Duration) -> Duration {
    let quota = row.quota.map_or(Duration::ZERO, |quota| windows(row, quota, phase));
    waves(row).max(queue(row)).max(quota)
}

/// A single volume: each delay, and the latency of each call. A describe call observes the end of a delay, with which
/// the latency of the request overlaps: one of the two latencies counts.
fn life(row: &Row) -> Duration {
    row.create + row.attach + row.detach + latency(row.latency) * CALLS
}

/// The mean latency of a call. That of a lognormal distribution is `median * exp(sigma^2 / 2)`.
fn latency(latency: Latency) -> Duration {
    match latency {
        Latency::None => Duration::ZERO,
        Latency::Fixed(time) => time,
        Latency::Lognormal { median, sigma } => median.mul_f64((sigma * sigma / 2.0).exp()),
    }
}

/// Parallel volumes, in `ceil(volumes / parallel)` waves.
fn waves(row: &Row) -> Duration {
    life(row) * row.volumes.div_ceil(row.parallel)
}

/// An instance that executes one operation at a time is a queue with two operations per volume, which begins when the
/// first disk has been created.
fn queue(row: &Row) -> Duration {
    match row.instances {
        Instances::Tagged => Duration::ZERO,
        Instances::Serial => row.create + (row.attach + row.detach) * row.volumes.div_ceil(row.nodes),
    }
}

/// `CreateDisk` is called once per volume, so the last call is in window `ceil(volumes / quota)`, followed by the other
/// calls of that volume.
fn windows(row: &Row, quota: Quota, phase: Duration) -> Duration {
    let before = quota.window * (row.volumes.div_ceil(quota.calls) - 1);
    before.saturating_sub(phase) + life(row)
}
