//! Waiting for the mount table to change: the kernel reports it as an exceptional condition of
//! `/proc/self/mountinfo` (proc(5), since Linux 2.6.15).

use std::fs::File;
use std::path::Path;

use tokio::io::Interest;

use super::error::{HostError, Result};
use super::uevent::watched;
use crate::base::Deadline;

/// Returns once this namespace's mounts have changed since the call, or at the deadline.
pub(super) async fn change(table: &Path, deadline: Deadline) -> Result<()> {
    let failed = |error| HostError::io("watch", table, error);
    // Opening a file of procfs does not block.
    let file = File::open(table).map_err(failed)?;
    let file = watched(file, Interest::PRIORITY).map_err(failed)?;
    match deadline.bound(file.ready(Interest::PRIORITY)).await {
        Ok(ready) => ready.map(drop).map_err(failed),
        Err(_) => Ok(()),
    }
}
