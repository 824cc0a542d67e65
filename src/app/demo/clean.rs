//! Taking down what the demo set up, in whatever state it was stopped.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use crate::base::Deadline;
use crate::host::{Host, Linux};

/// How long mounts may stay busy: a step that was stopped in the middle of a write ends by itself.
const PATIENCE: Duration = Duration::from_secs(15);
const TICK: Duration = Duration::from_millis(50);

/// Unmounts everything below the directory, the topmost first, as soon as nobody uses it any more.
pub(super) async fn unmount_below(host: &Linux, directory: &Path) -> anyhow::Result<()> {
    let patience = Deadline::after(PATIENCE);
    let mut tick = tokio::time::interval(TICK);
    loop {
        tick.tick().await;
        match unmount_once(host, directory).await {
            Err(error) if patience.is_over() => return Err(error),
            Err(_) => {}
            Ok(()) => return Ok(()),
        }
    }
}

async fn unmount_once(host: &Linux, directory: &Path) -> anyhow::Result<()> {
    let deadline = Deadline::after(Duration::from_secs(5));
    let mounts = host
        .mounts(deadline)
        .await
        .context("cannot read the mount table")?;
    let mut outcome = Ok(());
    for mount in mounts
        .iter()
        .rev()
        .filter(|mount| mount.point.starts_with(directory))
    {
        if let Err(error) = host.unmount(deadline, &mount.point).await {
            outcome = Err(anyhow::Error::new(error).context("something stays mounted"));
        }
    }
    outcome
}

/// Removes the directory. Only called when nothing is mounted below it.
pub(super) fn remove(directory: &Path) -> anyhow::Result<()> {
    std::fs::remove_dir_all(directory)
        .with_context(|| format!("cannot remove {}", directory.display()))
}

/// Holds that no loop device has a file of the directory behind it any more.
pub(super) fn check(directory: &Path) -> anyhow::Result<()> {
    let devices = std::fs::read_dir("/sys/block").context("cannot look for loop devices")?;
    let left: Vec<_> = devices
        .flatten()
        .filter(|device| {
            // Most devices are no loop devices, and a free one has no file.
            let file = std::fs::read_to_string(device.path().join("loop/backing_file"));
            file.is_ok_and(|file| Path::new(file.trim_end()).starts_with(directory))
        })
        .map(|device| format!("/dev/{}", device.file_name().display()))
        .collect();
    anyhow::ensure!(left.is_empty(), "still in use: {}", left.join(", "));
    Ok(())
}
