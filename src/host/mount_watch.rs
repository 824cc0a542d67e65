//! Waiting for the mount table to change: the kernel says so by an exceptional condition on
//! `/proc/self/mountinfo` (proc(5), since Linux 2.6.15).

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::error::{HostError, Result};

/// Returns once this namespace's mounts have changed since the call, or after that time. It blocks.
pub(super) fn change(table: &Path, within: Duration) -> Result<()> {
    let file = File::open(table).map_err(|error| HostError::io("watch", table, error))?;
    let mut watched = [PollFd::new(file.as_fd(), PollFlags::POLLPRI)];
    let within = PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX);
    match poll(&mut watched, within) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(HostError::io("watch", table, errno)),
    }
}
