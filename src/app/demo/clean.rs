//! Cleanup after the demo, in whatever state it was stopped.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use crate::base::Deadline;
use crate::linux::{Host, Linux};

/// How long mounts may stay busy: an interrupted write finishes by itself.
const UNMOUNT_TIMEOUT: Duration = Duration::from_secs(15);
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Unmounts everything below the directory, topmost mounts first, and retries while a mount is busy.
pub(super) async fn unmount_below(host: &Linux, directory: &Path) -> anyhow::Result<()> {
    let deadline = Deadline::after(UNMOUNT_TIMEOUT);
    let mut tick = tokio::time::interval(RETRY_INTERVAL);
    loop {
        tick.tick().await;
        match unmount_once(host, directory).await {
            Err(error) if deadline.has_passed() => return Err(error),
            Err(_) => {}
            Ok(()) => return Ok(()),
        }
    }
}

async fn unmount_once(host: &Linux, directory: &Path) -> anyhow::Result<()> {
    let deadline = Deadline::after(Duration::from_secs(5));
    let mounts = host.mounts(deadline).await.context("cannot read the mount table")?;
    let mut outcome = Ok(());
    for mount in mounts.iter().rev().filter(|mount| mount.point.starts_with(directory)) {
        if let Err(error) = host.unmount(deadline, &mount.point).await {
            outcome = Err(anyhow::Error::new(error).context("cannot unmount"));
        }
    }
    outcome
}

/// Removes the directory. Nothing may be mounted below it.
pub(super) fn remove(directory: &Path) -> anyhow::Result<()> {
    std::fs::remove_dir_all(directory).with_context(|| format!("cannot remove {}", directory.display()))
}

/// Checks that no loop device is backed by a file of the directory.
pub(super) fn check(directory: &Path) -> anyhow::Result<()> {
    let devices = std::fs::read_dir("/sys/block").context("cannot list loop devices")?;
    let left: Vec<_> = devices
        .flatten()
        .filter(|device| {
            // Other block devices and free loop devices have no backing file.
            let file = std::fs::read_to_string(device.path().join("loop/backing_file"));
            file.is_ok_and(|file| Path::new(file.trim_end()).starts_with(directory))
        })
        .map(|device| format!("/dev/{}", device.file_name().display()))
        .collect();
    anyhow::ensure!(left.is_empty(), "still in use: {}", left.join(", "));
    Ok(())
}
