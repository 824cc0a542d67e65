//! Taking a device for one process and its children. mkfs opens a device for exclusive use, but not
//! each does so all along, and a mkfs outlives the process that began it where that is killed. So the device's node is locked
//! (flock(2)), and mkfs inherits the lock with its standard input: it ends when the last of them does.
//! udev honours the same lock: it does not probe a disk that is being formatted.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::blockdev;
use super::blocking::blocking;
use super::device::Device;
use super::error::{HostError, Result};
use super::mount::check_number;
use crate::base::Deadline;

/// How often to look whether a device is free again; nothing tells.
const TICK: Duration = Duration::from_millis(50);

/// A device that is taken. Clones are the same claim.
#[derive(Debug, Clone)]
pub struct Claim {
    device: PathBuf,
    lock: Arc<File>,
}

impl Claim {
    /// A claim of hosts of plain values: `lock` is open as long as it lives.
    #[cfg(test)]
    pub(crate) fn of(device: &Device, lock: Arc<File>) -> Self {
        Self {
            device: device.path.clone(),
            lock,
        }
    }

    /// The claim as a command's standard input. The programs that get it read nothing from it.
    pub(super) fn to_stdin(&self) -> std::io::Result<Stdio> {
        self.lock.try_clone().map(Stdio::from)
    }
}

impl PartialEq for Claim {
    fn eq(&self, other: &Self) -> bool {
        self.device == other.device
    }
}

impl Eq for Claim {}

pub(super) async fn claim(deadline: Deadline, device: &Device) -> Result<Claim> {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let claimed = || HostError::Claimed {
        device: device.path.clone(),
    };
    let mut was_claimed = false;
    loop {
        ticks.tick().await;
        let chosen = device.clone();
        let taken = blocking(deadline, "claim", &device.path, move || take(&chosen)).await;
        match taken {
            Ok(Some(lock)) => {
                return Ok(Claim {
                    device: device.path.clone(),
                    lock: Arc::new(lock),
                });
            }
            Ok(None) if deadline.remaining() <= TICK => return Err(claimed()),
            Ok(None) => was_claimed = true,
            // A busy machine; what the last look told is known all the same.
            Err(HostError::Late { .. }) if was_claimed => return Err(claimed()),
            Err(error) => return Err(error),
        }
    }
}

pub(super) async fn claim_if_blank(deadline: Deadline, device: &Device) -> Result<Option<Claim>> {
    let chosen = device.clone();
    let taken = blocking(deadline, "claim", &device.path, move || {
        check_number(&chosen)?;
        let path = &chosen.path;
        let failed = |error| HostError::io("read", path, error);
        // Open until the claim is there: what was read of a device is forgotten with the last who has it open.
        let mut glance = File::open(path).map_err(failed)?;
        if !blockdev::begins_blank(&mut glance, chosen.size).map_err(failed)? {
            return Ok(None);
        }
        // Who cannot claim it is no worse off than who found it claimed.
        Ok(take(&chosen).unwrap_or(None))
    });
    Ok(taken.await?.map(|lock| Claim {
        device: device.path.clone(),
        lock: Arc::new(lock),
    }))
}

/// The lock; none while somebody else has it.
fn take(device: &Device) -> Result<Option<File>> {
    check_number(device)?;
    let failed = |error| HostError::io("claim", &device.path, error);
    // udev looks at a device that it found claimed when somebody who could write closes it.
    let file = OpenOptions::new()
        .read(true)
        .write(!device.read_only)
        .open(&device.path)
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}
