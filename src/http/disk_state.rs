//! The current state of a disk in the cloud, beside the history of its calls, which a restart loses.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::metrics::ControllerGauges;
use crate::base::{Deadline, error_chain};
use crate::model::{Disk, DiskId};

/// Less than the timeout of those who read the page.
const TIMEOUT: Duration = Duration::from_secs(3);

/// A trait, so that the linker leaves the client of the cloud out of the program of the node.
#[async_trait]
pub(crate) trait DiskState: Debug + Send + Sync {
    /// Reads the state of a disk of this cluster, or of any disk for which this process has handled calls
    /// (`is_handled`). Returns `None` if `volume` is not a disk ID, and the reason if the read fails.
    async fn read(&self, volume: &str, is_handled: bool) -> Option<Result<Value, String>>;
}

/// Reads the state with the poller of the controller.
#[async_trait]
impl DiskState for ControllerGauges {
    async fn read(&self, volume: &str, is_handled: bool) -> Option<Result<Value, String>> {
        let id: DiskId = volume.parse().ok()?;
        let inventory = &self.disks.inventory;
        Some(match inventory.disk(Deadline::after(TIMEOUT), &id).await {
            // The readers of the page may not read other disks of the account.
            Ok(disk) if !is_handled && !inventory.owns(&disk.tags) => {
                Err(format!("disk {id} does not have the tag of this cluster"))
            }
            Ok(disk) => Ok(state(&disk)),
            Err(error) => Err(error_chain(&error)),
        })
    }
}

fn state(disk: &Disk) -> Value {
    json!({
        "status": disk.status.to_string(),
        "category": disk.category.to_string(),
        "sizeGib": disk.size.0,
        "zone": disk.zone,
        "instances": disk.attachments,
    })
}
