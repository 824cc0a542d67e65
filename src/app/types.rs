//! What instance types take, from the cloud into the file that nodes read.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};

use crate::base::chain::chain;
use crate::base::{Deadline, Tasks};
use crate::disk::DiskServices;
use crate::host::record;

/// How often the cloud is asked again: types change with the machines of the cluster.
const PERIOD: Duration = Duration::from_secs(600);

/// How often it is asked while that has not succeeded.
const AGAIN: Duration = Duration::from_secs(30);

/// How long one round may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Writes the file now and again, as long as the process runs. A shutdown does not wait for it: the
/// file is replaced as a whole or not at all.
pub(super) fn publish(disks: Arc<DiskServices>, file: PathBuf) {
    Tasks::default().start(async move {
        let mut written: Option<String> = None;
        let mut tick = tokio::time::interval(AGAIN);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next = Instant::now();
        loop {
            if tick.tick().await < next {
                continue;
            }
            match round(&disks, &file, written.as_deref()).await {
                Ok(text) => {
                    written = Some(text);
                    next = Instant::now() + PERIOD;
                }
                Err(error) => tracing::warn!(
                    file = %file.display(),
                    "the instance types are not published: {error}"
                ),
            }
        }
    });
}

/// Asks, and writes what is not written already.
async fn round(disks: &DiskServices, file: &Path, before: Option<&str>) -> Result<String, String> {
    let types = disks
        .instance_types
        .in_region(Deadline::after(PATIENCE))
        .await;
    let types = types.map_err(|error| chain(&error))?;
    if types.0.is_empty() {
        // An account without the right to list machines is answered with none.
        return Err("the cloud shows no machine of this region".to_owned());
    }
    let text = types.text();
    if before != Some(text.as_str()) {
        let replaced = record::replace(Deadline::after(PATIENCE), file, text.clone().into_bytes());
        replaced.await.map_err(|error| chain(&error))?;
        tracing::info!(file = %file.display(), types = types.0.len(), "instance types published");
    }
    Ok(text)
}
