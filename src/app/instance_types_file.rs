//! Publishes the attachment limits of instance types in the file that nodes read.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};

use crate::base::chain::chain;
use crate::base::{Deadline, Tasks};
use crate::disk::DiskServices;
use crate::host::record;

/// Interval of requests: types change with the nodes of the cluster.
const REFRESH_INTERVAL: Duration = Duration::from_secs(600);

/// Interval of retries after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

const TIMEOUT: Duration = Duration::from_secs(120);

/// Keeps the file up to date while the process runs. Shutdown does not wait for it: the file is replaced atomically.
pub(super) fn publish(disks: Arc<DiskServices>, file: PathBuf) {
    Tasks::default().start(async move {
        let mut written: Option<String> = None;
        let mut tick = tokio::time::interval(RETRY_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next = Instant::now();
        loop {
            if tick.tick().await < next {
                continue;
            }
            match round(&disks, &file, written.as_deref()).await {
                Ok(text) => {
                    written = Some(text);
                    next = Instant::now() + REFRESH_INTERVAL;
                }
                Err(error) => tracing::warn!(
                    file = %file.display(),
                    "cannot publish the instance types: {error}"
                ),
            }
        }
    });
}

/// Requests the limits, and writes them if they have changed.
async fn round(disks: &DiskServices, file: &Path, before: Option<&str>) -> Result<String, String> {
    let types = disks
        .instance_types
        .in_region(Deadline::after(TIMEOUT))
        .await;
    let types = types.map_err(|error| chain(&error))?;
    if types.0.is_empty() {
        // An account without permission for DescribeInstances gets an empty list.
        return Err("the cloud reports no instances in this region".to_owned());
    }
    let text = types.text();
    if before != Some(text.as_str()) {
        let replaced = record::replace(Deadline::after(TIMEOUT), file, text.clone().into_bytes());
        replaced.await.map_err(|error| chain(&error))?;
        tracing::info!(file = %file.display(), types = types.0.len(), "instance types published");
    }
    Ok(text)
}
