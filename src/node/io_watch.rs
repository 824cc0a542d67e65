//! Observes whether the device of a volume completes I/O, by its statistics in sysfs. A call that waits for a device
//! that does not respond blocks in the kernel, where even SIGKILL does not end it.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::observe::{CallContext, quick};
use super::volume_operations::{VolumeOperations, hung};
use super::{Error, Result};
use crate::base::{error_chain, lock};
use crate::linux::{Device, HostError, IoStatistics};
use crate::model::DiskId;

/// A device that has had I/O in flight for this long and completed none does not respond. Shorter pauses are normal for
/// network storage.
const HUNG: Duration = Duration::from_secs(5);

/// A tool whose device has not responded for this long does not count as running: it may never end. It is longer than a
/// failover of the storage, after which all tools would otherwise run concurrently.
const SLOT_TIMEOUT: Duration = Duration::from_secs(180);

/// Interval of the observations before a call that waits for the device.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Interval of the observations during such a call.
const OBSERVE_INTERVAL: Duration = Duration::from_secs(1);

/// A check ends this long before the deadline, so that its error reaches the caller.
const MARGIN: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Default)]
pub(super) struct IoWatch {
    pub(super) operations: VolumeOperations,
    /// Devices that did not respond to the last check: the number of completed I/O, and since when it is the same.
    unresponsive: Arc<Mutex<HashMap<DiskId, (u64, Instant)>>>,
}

/// The number of completed I/O, and since when it is the same while some is in flight. `before` is the result for an
/// earlier observation.
fn unchanged_since(before: Option<(u64, Instant)>, now: IoStatistics) -> (u64, Instant) {
    let same = before.filter(|(completed, _)| *completed == now.completed);
    same.unwrap_or_else(|| (now.completed, Instant::now()))
}

impl IoWatch {
    /// Waits until the device completes I/O or has none in flight, before a call that writes data which the kernel
    /// caches for it.
    ///
    /// # Errors
    /// `DISK_HUNG` shortly before the deadline.
    pub(super) async fn check_responds(&self, call: CallContext<'_>, device: &Device) -> Result<()> {
        let step = format!("waiting until {device} completes I/O");
        let _step = self.operations.step(call.id(), step);
        let mut ticks = interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut first = None;
        loop {
            ticks.tick().await;
            let now = match call.host.io_statistics(quick(), device).await {
                Ok(Some(now)) if now.in_flight > 0 => now,
                Ok(_) => break,
                Err(error) if call.deadline.remaining() <= MARGIN => return Err(call.failed()(error)),
                Err(_) => continue,
            };
            let (completed, since) = *first.get_or_insert_with(|| {
                // A count that differs from that of an earlier check does not show that the device responds now.
                let known = lock(&self.unresponsive).get(call.id()).copied();
                unchanged_since(known, now)
            });
            if now.completed != completed {
                break;
            }
            if since.elapsed() < HUNG {
                continue;
            }
            let hung_device = (device.to_string(), since);
            self.operations.set_hung(call.id(), Some(hung_device));
            if call.deadline.remaining() <= MARGIN {
                lock(&self.unresponsive).insert(call.id().clone(), (completed, since));
                let progress = format!("{} waits for it", call.operation);
                return Err(hung(call.id(), device, since.elapsed(), &progress));
            }
        }
        lock(&self.unresponsive).remove(call.id());
        self.operations.set_hung(call.id(), None);
        Ok(())
    }

    /// Runs steps that wait for the device. Meanwhile, other calls of the volume fail with `DISK_HUNG` while
    /// the device does not respond. `slot` is released early if that lasts.
    ///
    /// # Errors
    /// Those of the steps; `DISK_HUNG` if a call timed out because the device does not respond.
    pub(super) async fn observe<T>(
        &self,
        call: CallContext<'_>,
        device: &Device,
        mut slot: Option<OwnedSemaphorePermit>,
        run: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut blocked = None;
        let observe = async {
            loop {
                sleep(OBSERVE_INTERVAL).await;
                let Ok(now) = call.host.io_statistics(quick(), device).await else {
                    continue;
                };
                let in_flight = now.filter(|now| now.in_flight > 0);
                blocked = in_flight.map(|now| unchanged_since(blocked, now));
                let lasts = |limit| blocked.filter(|(_, since)| since.elapsed() >= limit);
                slot.take_if(|_| lasts(SLOT_TIMEOUT).is_some());
                let hung_device = lasts(HUNG).map(|(_, since)| (device.to_string(), since));
                self.operations.set_hung(call.id(), hung_device);
            }
        };
        let result = tokio::select! {
            biased;
            result = run => result,
            never = observe => never,
        };
        self.operations.set_hung(call.id(), None);
        let error = match result {
            Err(Error::Host { source, .. }) => source,
            result => return result,
        };
        let blocked = match &error {
            HostError::StillRunning { since, .. } => Some(*since),
            HostError::TimedOut { .. } => blocked.map(|(_, since)| since.elapsed()),
            _ => None,
        };
        if let Some(blocked) = blocked.filter(|blocked| *blocked >= HUNG)
            && completes_none(call, device).await
        {
            let progress = error_chain(&error);
            return Err(hung(call.id(), device, blocked, &progress));
        }
        Err(call.failed()(error))
    }

    /// Runs a named step of the host, as [`Self::observe`].
    pub(super) async fn observe_host<T>(
        &self,
        call: CallContext<'_>,
        device: &Device,
        step: String,
        run: impl Future<Output = std::result::Result<T, HostError>>,
    ) -> Result<T> {
        let _step = self.operations.step(call.id(), step);
        let run = async { run.await.map_err(call.failed()) };
        self.observe(call, device, None, run).await
    }

    /// Removes the observations of an unstaged volume.
    pub(super) fn forget(&self, volume: &DiskId) {
        lock(&self.unresponsive).remove(volume);
    }
}

/// Whether the device has I/O in flight and completes none for a moment.
async fn completes_none(call: CallContext<'_>, device: &Device) -> bool {
    let first = call.host.io_statistics(quick(), device).await;
    sleep(CHECK_INTERVAL).await;
    let now = call.host.io_statistics(quick(), device).await;
    matches!((first, now), (Ok(Some(first)), Ok(Some(now)))
        if now.in_flight > 0 && first.in_flight > 0 && now.completed == first.completed)
}
