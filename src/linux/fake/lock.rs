//! The lock of a device, held by another process until a set time, or by a [`DeviceLock`].

use std::sync::Arc;
use std::time::Duration;

use super::FakeHost;
use crate::base::Deadline;
use crate::linux::{Device, DeviceLock, HostError, Result};

impl FakeHost {
    pub(super) async fn lock(&self, deadline: Deadline, device: &Device) -> Result<DeviceLock> {
        let locked = || HostError::DeviceLocked {
            device: device.path.clone(),
        };
        if self.state().failing_call == Some("lock") {
            return Err(locked());
        }
        let locked_until = self.state().locked_until;
        if let Some(until) = locked_until {
            let free = deadline.bound(tokio::time::sleep_until(until));
            free.await.map_err(|_| locked())?;
        }
        while self.state().lock.strong_count() > 0 {
            let tick = deadline.bound(tokio::time::sleep(Duration::from_millis(50)));
            tick.await.map_err(|_| locked())?;
        }
        let lock = DeviceLock::new(tempfile::tempfile().unwrap());
        self.state().lock = Arc::downgrade(&lock.0);
        Ok(lock)
    }
}
