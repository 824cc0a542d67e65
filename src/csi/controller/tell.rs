//! Which failures become events of the cluster. No call waits for it, and none fails by it.

use std::sync::Arc;
use std::time::Duration;

use super::Service;
use crate::base::chain::chain;
use crate::base::{Deadline, Tasks};
use crate::cluster::events::{Claim, Happening, Turn, reason};
use crate::csi::status;
use crate::disk::{DiskServices, Error};
use crate::model::tag::{CREATED_FOR, LONGEST_VALUE};
use crate::model::{Disk, DiskId};

/// How long it may take to find out for which claim a disk is.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tells the claim of a volume that could not be made.
pub(super) fn not_created(service: &Service, claim: Option<Claim>, error: &Error) {
    let (Error::OutOfStock { .. }, Some(claim)) = (error, claim) else {
        return;
    };
    let about = format!("{}/{}", claim.namespace, claim.name);
    if let Some(turn) = service.events.turn(reason::SOLD_OUT, &about) {
        let reasons = status::message(error.failure(), &chain(error));
        turn.tell(Happening::SoldOut { claim, reasons });
    }
}

/// Tells of a disk that could not be brought to a node.
pub(super) fn not_attached(service: &Service, error: &Error) {
    match error {
        Error::InUseElsewhere { disk, node, holder } => {
            let about = format!("{disk} {node}");
            let Some(turn) = service.events.turn(reason::IN_USE_ELSEWHERE, &about) else {
                return;
            };
            let (disk, node, holder) = (disk.clone(), node.clone(), holder.clone());
            for_claim(service, turn, disk.clone(), move |claim| {
                Happening::InUseElsewhere {
                    disk,
                    node,
                    holder,
                    claim,
                }
            });
        }
        Error::NodeFull { disk, node, .. } => {
            // Which disk it is makes no difference to the node.
            let Some(turn) = service.events.turn(reason::NODE_FULL, node.as_str()) else {
                return;
            };
            let (disk, node) = (disk.clone(), node.clone());
            let reasons = status::message(error.failure(), &chain(error));
            for_claim(service, turn, disk.clone(), move |claim| {
                Happening::NodeFull {
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

/// Looks for which claim the disk is, and tells then. Nobody waits for it, not even the end of the process.
fn for_claim(
    service: &Service,
    turn: Turn,
    disk: DiskId,
    happening: impl FnOnce(Option<Claim>) -> Happening + Send + 'static,
) {
    let disks = Arc::clone(&service.disks);
    Tasks::default().start(async move { turn.tell(happening(claim_of(&disks, &disk).await)) });
}

/// As the disk's tags name it.
async fn claim_of(disks: &DiskServices, disk: &DiskId) -> Option<Claim> {
    let row: Disk = disks
        .inventory
        .disk(Deadline::after(PATIENCE), disk)
        .await
        .ok()?;
    let of = |key: &str| {
        let value = row.tags.get(&format!("{CREATED_FOR}{key}"))?;
        // A longer one was cut off, and may be another's.
        (value.chars().count() < LONGEST_VALUE).then_some(value)
    };
    let (namespace, name, volume) = (of("pvc/namespace")?, of("pvc/name")?, of("pv/name")?);
    Some(Claim::of_volume(namespace, name, volume))
}
