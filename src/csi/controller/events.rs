//! Kubernetes events about failures. No call waits for an event or fails because of it.

use std::sync::Arc;
use std::time::Duration;

use super::service::Service;
use crate::base::{Deadline, Tasks, error_chain};
use crate::cluster::events::{Claim, ClusterEvent, EventPermit, reason};
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
    if let Some(permit) = service.events.permit(reason::OUT_OF_STOCK, &about) {
        let reasons = status::message(error.failure(), &error_chain(error));
        permit.record(ClusterEvent::OutOfStock { claim, reasons });
    }
}

pub(super) fn volume_not_attached(service: &Service, error: &Error) {
    match error {
        Error::InUseElsewhere { disk, node, holder } => {
            let about = format!("{disk} {node}");
            let Some(permit) = service.events.permit(reason::IN_USE_ELSEWHERE, &about) else {
                return;
            };
            let (disk, node, holder) = (disk.clone(), node.clone(), holder.clone());
            for_claim(service, permit, disk.clone(), move |claim| {
                ClusterEvent::InUseElsewhere {
                    disk,
                    node,
                    holder,
                    claim,
                }
            });
        }
        Error::AttachLimitExceeded { disk, node, .. } => {
            // One event per node, whatever the disk.
            let Some(permit) = service.events.permit(reason::ATTACH_LIMIT_EXCEEDED, node.as_str()) else {
                return;
            };
            let (disk, node) = (disk.clone(), node.clone());
            let reasons = status::message(error.failure(), &error_chain(error));
            for_claim(service, permit, disk.clone(), move |claim| {
                ClusterEvent::AttachLimitExceeded {
                    disk,
                    node,
                    claim,
                    reasons,
                }
            });
        }
        _ => {}
    }
}

/// Searches the claim of the disk and writes the event in the background. Shutdown does not wait for it.
fn for_claim(
    service: &Service,
    permit: EventPermit,
    disk: DiskId,
    event: impl FnOnce(Option<Claim>) -> ClusterEvent + Send + 'static,
) {
    let disks = Arc::clone(&service.disks);
    Tasks::default().spawn(async move { permit.record(event(claim_of(&disks, &disk).await)) });
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
