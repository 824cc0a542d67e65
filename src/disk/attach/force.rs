//! Decides on a force attach (`AttachDisk` with `Force`) of a regional disk whose detach from another node does not
//! complete. A disk in use is never force-attached.

use std::time::Duration;

use ecs::Condition;
use ecs::poll::Observation;
use tokio::time::Instant;

use super::attachments::Attachments;
use super::target::{AttachOperation, Target};
use crate::model::{Disk, DiskStatus, InstanceId};

/// How long a detach may last before the disk is force-attached. It lasts a minute at most (ECS, `DetachDisk`).
const DETACH_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct ForceAttach {
    /// The other nodes from which the disk is detaching, and since when.
    detaching: Option<(Vec<InstanceId>, Instant)>,
    /// The next attempt uses force if the detach is still stuck.
    pub(super) due: bool,
    pub(super) forced: bool,
    pub(super) unsupported: bool,
}

impl ForceAttach {
    /// Records a row. True while the disk is detaching from other nodes.
    pub(super) fn observe(&mut self, shared: &Attachments, target: Target<'_>, row: &Disk) -> bool {
        let is_detaching_elsewhere = row.category.is_regional()
            && !row.multi_attach
            && row.status == DiskStatus::Detaching
            && !row.attachments.is_empty()
            && !row.is_attached_to(target.node);
        if self.unsupported || !is_detaching_elsewhere {
            self.detaching = None;
            return false;
        }
        // Earlier calls may have observed it already.
        let since = |node| shared.start(Target { node, ..target }, AttachOperation::Detach);
        let since = row.attachments.iter().map(since).max();
        self.detaching = since.map(|since| (row.attachments.clone(), since));
        true
    }

    /// Whether the next attempt may use force. The disk is read again, because the wait for a permit took time.
    pub(super) async fn may_force(&mut self, shared: &Attachments, target: Target<'_>) -> bool {
        let due = std::mem::take(&mut self.due);
        let Some(before) = self.detaching.take_if(|_| due) else {
            return false;
        };
        match shared.observe(target).await {
            Ok(Observation::Row(row)) if row.attachments == before.0 => {
                self.detaching = Some(before);
                self.observe(shared, target, &row)
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// Whether the detach from the same nodes exceeds [`DETACH_TIMEOUT`].
    pub(super) fn is_stuck(&self) -> bool {
        let detaching = self.detaching.as_ref();
        detaching.is_some_and(|(_, since)| since.elapsed() >= DETACH_TIMEOUT)
    }
}

/// Whether the cloud rejects the force attach, and not the attach: within one zone, or for this kind of disk.
pub(super) fn is_force_unsupported(rejection: &ecs::Error) -> bool {
    [Condition::ForceInSameZone, Condition::ForceUnsupported].contains(&rejection.condition())
}
