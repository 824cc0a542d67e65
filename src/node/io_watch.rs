//! Observes whether the device of a volume completes I/O, by its statistics in sysfs. A call that waits for a device that
//! does not respond blocks in the kernel, where even SIGKILL does not end it.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, interval, interval_at};

use super::observe::{CallContext, quick};
use super::volume_operations::VolumeOperations;
use super::{Error, Result};
use crate::base::Deadline;
use crate::host::{Device, Host, IoCounts};
use crate::model::DiskId;

/// Interval of the observations before a call that waits for the device.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Interval of the observations during such a call.
const OBSERVE_INTERVAL: Duration = Duration::from_secs(1);

/// A check ends this long before the deadline, so that its error reaches the caller.
const MARGIN: Duration = Duration::from_secs(1);

/// A tool whose device has completed no I/O for this long does not count as running.
const SLOT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub(super) struct IoWatch {
    pub(super) host: Arc<dyn Host>,
    pub(super) operations: VolumeOperations,
    /// The volumes whose devices have I/O in flight: the number of completed ones, and since when.
    pub(super) in_flight: Arc<Mutex<HashMap<DiskId, (u64, Instant)>>>,
}

impl IoWatch {
    /// Waits until the device completes I/O or has none in flight, before a call that writes what the kernel holds for it.
    ///
    /// # Errors
    /// [`Error::DiskHung`] shortly before the deadline.
    pub(super) async fn check_responds(
        &self,
        call: CallContext<'_>,
        device: &Device,
        deadline: Deadline,
    ) -> Result<()> {
        let mut ticks = interval(CHECK_INTERVAL);
        loop {
            ticks.tick().await;
            let Some(since) = self.hung_since(call, device).await else {
                return Ok(());
            };
            // One observation does not show whether the device completes I/O.
            if deadline.remaining() <= MARGIN && since.elapsed() >= CHECK_INTERVAL {
                return Err(Error::DiskHung {
                    volume: call.id().clone(),
                    device: device.to_string(),
                    seconds: since.elapsed().as_secs(),
                    progress: format!("{} waits for it", call.operation),
                });
            }
        }
    }

    /// Runs steps that wait for the device. Meanwhile, other calls of the volume fail with [`Error::DiskHung`] while the
    /// device completes no I/O. `slot` is released early if that lasts: a tool on such a device may never end.
    pub(super) async fn observe<T>(
        &self,
        call: CallContext<'_>,
        device: &Device,
        mut slot: Option<OwnedSemaphorePermit>,
        run: impl Future<Output = T>,
    ) -> T {
        let observe = async {
            let mut ticks = interval_at(Instant::now() + OBSERVE_INTERVAL, OBSERVE_INTERVAL);
            loop {
                ticks.tick().await;
                let since = self.hung_since(call, device).await;
                slot.take_if(|_| since.is_some_and(|since| since.elapsed() >= SLOT_TIMEOUT));
                let hung = since.map(|since| (device.to_string(), since));
                self.operations.set_hung(call.id(), hung);
            }
        };
        let result = tokio::select! {
            biased;
            result = run => result,
            never = observe => never,
        };
        self.operations.set_hung(call.id(), None);
        result
    }

    /// Since when the device has had I/O in flight and completed none; `None` if it has completed some since the last
    /// observation, or none is in flight.
    async fn hung_since(&self, call: CallContext<'_>, device: &Device) -> Option<Instant> {
        let text = self.host.block_setting(quick(), device, IoCounts::FILE);
        let now = text.await.ok().flatten();
        let now = now.and_then(|text| IoCounts::parse(&text));
        let mut all = self
            .in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(now) = now.filter(|now| now.in_flight > 0) else {
            all.remove(call.id());
            return None;
        };
        let entry = all.entry(call.id().clone());
        let is_first = matches!(entry, std::collections::hash_map::Entry::Vacant(_));
        let (completed, since) = entry.or_insert((now.completed, Instant::now()));
        if is_first || *completed == now.completed {
            return Some(*since);
        }
        (*completed, *since) = (now.completed, Instant::now());
        None
    }
}
