//! Attaches a regional disk by force, where the cloud supports that, if the detach from its node was requested but does not
//! complete. A disk in use is never taken over.

use std::time::Duration;

use tokio::time::Instant;

use super::call::Call;
use crate::cloud::view::Observation;
use crate::cloud::{self, Condition};
use crate::model::{Disk, DiskStatus, InstanceId, InstanceStatus};

/// How long a detach may last before the disk is taken over. It lasts a minute at most (ECS, `DetachDisk`).
const STUCK: Duration = Duration::from_secs(60);

/// Whether and when a disk may be attached by force.
#[derive(Debug, Default)]
pub(super) struct Takeover {
    /// The other nodes that detach the disk, and since when they do.
    stuck: Option<(Vec<InstanceId>, Instant)>,
    /// The next attempt is by force, if the detach is still stuck then.
    pub(super) due: bool,
    /// The last attempt was by force.
    pub(super) forced: bool,
    /// The cloud does not support force for this disk and node.
    pub(super) unsupported: bool,
}

impl Takeover {
    /// Records a row. True while other nodes detach the disk.
    pub(super) fn observe(&mut self, row: &Disk, node: &InstanceId) -> bool {
        let is_detaching_elsewhere = row.category.is_regional()
            && !row.multi_attach
            && row.status == DiskStatus::Detaching
            && !row.attachments.is_empty()
            && !row.is_attached_to(node);
        if self.unsupported || !is_detaching_elsewhere {
            self.stuck = None;
            return false;
        }
        let same = self
            .stuck
            .take_if(|(holders, _)| *holders == row.attachments);
        self.stuck = same.or_else(|| Some((row.attachments.clone(), Instant::now())));
        true
    }

    /// Whether the same nodes have been detaching the disk for too long.
    pub(super) fn is_stuck(&self) -> bool {
        let stuck = self.stuck.as_ref();
        stuck.is_some_and(|(_, since)| since.elapsed() >= STUCK)
    }
}

impl Call<'_> {
    /// Whether the attempt that is due may be by force. Waiting for a permit took time, so the disk is read again.
    pub(super) async fn may_force(self, takeover: &mut Takeover) -> bool {
        let due = std::mem::take(&mut takeover.due);
        let Some(before) = takeover.stuck.take_if(|_| due) else {
            return false;
        };
        match self.look().await {
            Ok(Observation::Row(row)) if row.attachments == before.0 => {
                takeover.stuck = Some(before);
                takeover.observe(&row, self.node)
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// Whether these instances are certainly stopped. A missing row proves nothing: without permission the list is empty.
    pub(super) async fn are_stopped(self, instances: &[InstanceId]) -> bool {
        for instance in instances {
            let result = self
                .attacher
                .instances
                .observe(instance, self.deadline)
                .await;
            let row = result.ok().and_then(Observation::row);
            if row.is_none_or(|row| row.status != InstanceStatus::Stopped) {
                return false;
            }
        }
        true
    }
}

/// Whether the cloud refuses force, and not the disk: within one zone, or for this kind of disk.
pub(super) fn refuses_force(refusal: &cloud::Error) -> bool {
    [Condition::ForceInSameZone, Condition::ForceUnsupported].contains(&refusal.condition())
}
