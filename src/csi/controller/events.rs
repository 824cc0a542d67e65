//! Kubernetes events about failures. No call waits for an event or fails because of it.

use std::sync::Arc;
use std::time::Duration;

use super::service::Service;
use crate::base::{Deadline, Tasks, error_chain};
use crate::cluster::events::{Cause, Claim, ClusterEvent};
use crate::csi::status;
use crate::disk::{DiskServices, Error};
use crate::model::tag::{CREATED_FOR, LONGEST_VALUE};
use crate::model::{Disk, DiskId};

const CLAIM_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn volume_not_created(service: &Service, claim: Option<Claim>, error: &Error) {
    let (Error::OutOfStock { .. }, Some(claim)) = (error, claim) else {
        return;
    };
    let about = format!("{}/{}", claim.namespace, claim.name);
    let reasons = message(error);
    let cause = Cause::OutOfStock { reasons };
    if let Some(permit) = service.events.permit(cause.reason(), &about) {
        let claim = Some(claim);
        permit.record(ClusterEvent { cause, claim });
    }
}

/// Searches the claim of the disk and writes the event in the background. Shutdown does not wait for it.
pub(super) fn volume_not_attached(service: &Service, error: &Error) {
    let (about, disk, cause) = match error {
        Error::InUseElsewhere { disk, node, holder } => {
            let (about, of) = (format!("{disk} {node}"), disk);
            let (disk, node, holder) = (disk.clone(), node.clone(), holder.clone());
            (about, of, Cause::InUseElsewhere { disk, node, holder })
        }
        Error::AttachLimitExceeded { disk, node, .. } => {
            let (node, reasons) = (node.clone(), message(error));
            // One event per node, whatever the disk.
            (node.to_string(), disk, Cause::AttachLimitExceeded { node, reasons })
        }
        _ => return,
    };
    let Some(permit) = service.events.permit(cause.reason(), &about) else {
        return;
    };
    let (disks, disk) = (Arc::clone(&service.disks), disk.clone());
    Tasks::default().spawn(async move {
        let claim = claim_of(&disks, &disk).await;
        permit.record(ClusterEvent { cause, claim });
    });
}

fn message(error: &Error) -> String {
    status::message(error.failure(), &error_chain(error))
}

async fn claim_of(disks: &DiskServices, disk: &DiskId) -> Option<Claim> {
    let row: Disk = disks.inventory.disk(Deadline::after(CLAIM_TIMEOUT), disk).await.ok()?;
    let of = |key: &str| {
        let value = row.tags.get(&format!("{CREATED_FOR}{key}"))?;
        // A longer value was truncated and may name another object.
        (value.chars().count() < LONGEST_VALUE).then_some(value)
    };
    let (namespace, name, volume) = (of("pvc/namespace")?, of("pvc/name")?, of("pv/name")?);
    Some(Claim::of_volume(namespace, name, volume))
}
