//! The least time that a row can take on any driver: the cloud's own delays and quotas, with four calls per volume.

use std::time::Duration;

use crate::row::{Instances, Latency, Quota, Row};

/// CreateDisk, AttachDisk, DetachDisk, DeleteDisk.
pub(crate) const CALLS: u32 = 4;

/// The floor of a run that starts so long after the beginning of a quota window.
pub(crate) fn floor(row: &Row, phase: Duration) -> Duration {
    let quota = row.quota.map_or(Duration::ZERO, |quota| windows(row, quota, phase));
    waves(row).max(queue(row)).max(quota)
}

/// One volume alone: each delay, and the latency of each of its calls. That a delay has passed is seen by a describe,
/// whose own latency overlaps with the delay: it is on the path once, in place of the order's.
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

/// So many volumes at a time, each through its life: `ceil(volumes / parallel)` waves.
fn waves(row: &Row) -> Duration {
    life(row) * row.volumes.div_ceil(row.parallel)
}

/// Where an instance does one operation at a time, it is a queue that each of its volumes passes twice; it begins when
/// the first disk has been created.
fn queue(row: &Row) -> Duration {
    match row.instances {
        Instances::Tagged => Duration::ZERO,
        Instances::Serial => row.create + (row.attach + row.detach) * row.volumes.div_ceil(row.nodes),
    }
}

/// `CreateDisk` is called once per volume, so the last one is sent in window `ceil(volumes / quota)`; then that volume
/// has the rest of its life before it.
fn windows(row: &Row, quota: Quota, phase: Duration) -> Duration {
    let before = quota.window * (row.volumes.div_ceil(quota.calls) - 1);
    before.saturating_sub(phase) + life(row)
}
