//! The lower bound of the time of a row for any driver: the delays and quotas of the cloud, with four calls per volume.

use std::time::Duration;

use fake_ecs::Options;
use fake_ecs::distribution::DurationDistribution;
use fake_ecs::latency::Latency;

use crate::row::Row;

/// CreateDisk, AttachDisk, DetachDisk, DeleteDisk.
pub(crate) const CALLS: u32 = 4;

/// The floor of a run that starts this time after the beginning of a quota window.
pub(crate) fn floor(row: &Row, phase: Duration) -> Duration {
    let cloud = row.options();
    let life = life(&cloud);
    // Parallel volumes, in `ceil(volumes / parallel)` waves.
    let waves = life * row.volumes.div_ceil(row.parallel);
    // `CreateDisk` is called once per volume, so the last call is in window `ceil(volumes / quota)`, followed by the
    // other calls of that volume.
    let windows = row.quota().map(|quota| {
        let before = quota.period * (row.volumes.div_ceil(quota.calls) - 1);
        before.saturating_sub(phase) + life
    });
    waves.max(queue(row, &cloud)).max(windows.unwrap_or_default())
}

/// A single volume: each delay, and the latency of each call. A describe call observes the end of a delay, with which
/// the latency of the request overlaps: one of the two latencies counts.
fn life(cloud: &Options) -> Duration {
    let latency: Latency = cloud.latency.iter().cloned().collect();
    let delays = [cloud.create_delay, cloud.attach_delay, cloud.detach_delay];
    delays.into_iter().map(mean).sum::<Duration>() + mean(latency.all) * CALLS
}

/// That of a lognormal distribution is `median * exp(sigma^2 / 2)`.
fn mean(distribution: DurationDistribution) -> Duration {
    match distribution {
        DurationDistribution::Uniform { min, max } => (min + max) / 2,
        DurationDistribution::Lognormal { median, sigma } => median.mul_f64((sigma * sigma / 2.0).exp()),
    }
}

/// An instance that executes one operation at a time is a queue with two operations per volume, which begins when the
/// first disk has been created.
fn queue(row: &Row, cloud: &Options) -> Duration {
    if !row.is_serial {
        return Duration::ZERO;
    }
    let operations = mean(cloud.attach_delay) + mean(cloud.detach_delay);
    mean(cloud.create_delay) + operations * row.volumes.div_ceil(row.nodes)
}
