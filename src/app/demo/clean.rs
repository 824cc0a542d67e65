//! Taking down what the demo set up, in whatever state it was stopped.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use crate::base::Deadline;
use crate::host::{Host, Linux};

/// Unmounts everything below the directory, the topmost first.
pub(super) async fn unmount_below(host: &Linux, directory: &Path) -> anyhow::Result<()> {
    let deadline = Deadline::after(Duration::from_secs(20));
    let mounts = host
        .mounts(deadline)
        .await
        .context("cannot read the mount table")?;
    let mut failed = Ok(());
    for mount in mounts
        .iter()
        .rev()
        .filter(|mount| mount.point.starts_with(directory))
    {
        if let Err(error) = host.unmount(deadline, &mount.point).await {
            failed = Err(anyhow::Error::new(error).context("something stays mounted"));
        }
    }
    failed
}

/// Removes the directory. Only called when nothing is mounted below it.
pub(super) fn remove(directory: &Path) -> anyhow::Result<()> {
    std::fs::remove_dir_all(directory)
        .with_context(|| format!("cannot remove {}", directory.display()))
}
