//! Proof that a device is blank, and how long it is valid. A process that reads a device, waits and then writes
//! would overwrite data written in between.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::time::Instant;

use super::Result;
use super::in_use::in_use;
use super::observe::{CallContext, Observer};
use crate::base::Deadline;
use crate::host::{Content, Device, DeviceLock, Sought};

/// How long a proof is valid. Planning and writing records take a few milliseconds. On a busy node or with a slow
/// disk the proof expires, and the device is read again.
const VALIDITY: Duration = Duration::from_millis(50);

/// The device was found blank while this process held it exclusively, so that no mkfs of another process can finish
/// between the read and the mkfs of this driver. The lock is exclusive within the process too.
#[derive(Debug)]
pub(super) struct BlankProof {
    device_lock: DeviceLock,
    read_at: Instant,
}

impl BlankProof {
    /// The device was found blank by a read that began at `read_at`. On a slow disk, reading takes long, and the first
    /// bytes are the oldest.
    pub(super) fn new(device_lock: DeviceLock, read_at: Instant) -> Self {
        Self {
            device_lock,
            read_at,
        }
    }

    /// The device was found blank by a second read, which is fast because the page cache holds most of the data.
    pub(super) fn from_second_read(device_lock: DeviceLock) -> Self {
        Self::new(device_lock, Instant::now())
    }

    pub(super) fn is_valid(&self) -> bool {
        self.read_at.elapsed() <= VALIDITY
    }

    /// The exclusive lock. It lasts as long as any of its clones.
    pub(super) fn device_lock(&self) -> &DeviceLock {
        &self.device_lock
    }
}

impl Observer {
    /// Reads the content of an unused device. Returns a proof if the device is blank and could be locked immediately.
    /// Only devices that appear blank are locked: udev probes a new device for a moment and skips locked ones.
    pub(super) async fn read_content(
        &self,
        device: &Device,
        deadline: Deadline,
        call: CallContext<'_>,
    ) -> Result<(Content, Option<BlankProof>)> {
        let device_lock = self.host.lock_if_blank(deadline, device).await;
        let device_lock = device_lock.map_err(call.failed())?;
        let read_at = Instant::now();
        let content = match self.host.content(deadline, device).await {
            // Another mount namespace still has the filesystem mounted, or a process has a file of it open.
            Err(error) if error.io_kind() == Some(ErrorKind::ResourceBusy) => {
                let sought = Sought::device(device);
                return Err(in_use(self.host.as_ref(), call, device.to_string(), &sought).await);
            }
            content => content.map_err(call.failed())?,
        };
        let device_lock = device_lock.filter(|_| content == Content::Blank);
        let proof = device_lock.map(|device_lock| BlankProof::new(device_lock, read_at));
        Ok((content, proof))
    }
}
