//! The snapshot of a disk before its deletion, if its StorageClass requested one.
//!
//! DeleteVolume has no parameters, so a tag of the disk has the retention. The name of the snapshot has the disk and
//! its last detach: each repetition of a deletion finds the snapshot, and a disk that was used since gets another. The
//! disk is kept until the snapshot is complete: until then, the cloud may read the disk.

use ecs::poll::Operation;
use tokio::time::Instant;

use super::Provisioner;
use super::clone::was_attached;
use crate::base::Deadline;
use crate::disk::Result;
use crate::disk::error::{Error, rejected};
use crate::disk::evidence::READ_LAG;
use crate::disk::snapshot::{NewSnapshot, SnapshotPurpose};
use crate::model::{Disk, DiskId, Failure, Snapshot, SnapshotStatus, tag};

impl Provisioner {
    /// Returns once the snapshot that a tag of the disk requests is complete. The disk is not attached since `began`.
    pub(super) async fn snapshot_before_deletion(&self, deadline: Deadline, id: &DiskId, began: Instant) -> Result<()> {
        // A row from before may have the time of an earlier detach.
        let lag = tokio::time::sleep_until(began + READ_LAG);
        if deadline.bound(lag).await.is_err() {
            let text = format!("cannot read disk {id} before deleting it");
            return Err(rejected(Failure::TimedOut, text, None));
        }
        let Some(row) = self.free_row(deadline, id, None).await? else {
            return Ok(());
        };
        let taken = async {
            let Some(new) = new_snapshot(&row)? else {
                return Ok(());
            };
            let taken = match self.snapshots.create(deadline, &new).await {
                // The refusal proves that no earlier request had an effect.
                Err(error) if refusal(&error) == Failure::NeverAttached && !was_attached(&row) => {
                    tracing::info!(disk.id = %id, "no snapshot before the deletion: the disk was never attached");
                    return Ok(());
                }
                taken => taken?.id,
            };
            let is_complete = |row: &Snapshot| row.status == SnapshotStatus::Accomplished;
            let operation = Operation::SnapshotComplete;
            self.wait_snapshot(deadline, &new, &taken, operation, is_complete).await
        };
        taken.await.map_err(|source| Error::NotDeleted {
            disk: id.clone(),
            source: Box::new(source),
        })
    }
}

fn refusal(error: &Error) -> Failure {
    match error {
        Error::CreationUnresolved { source, .. } => source.failure(),
        error => error.failure(),
    }
}

/// The requested snapshot, with the names of claim and volume; `None` without the tag.
fn new_snapshot(row: &Disk) -> Result<Option<NewSnapshot>> {
    let Some(days) = row.tags.get(tag::DELETION_SNAPSHOT_DAYS) else {
        return Ok(None);
    };
    let parsed = days.parse().ok();
    let Some(retention_days) = parsed.filter(|days| (1..=tag::MAX_RETENTION_DAYS).contains(days)) else {
        let (key, most) = (tag::DELETION_SNAPSHOT_DAYS, tag::MAX_RETENTION_DAYS);
        let text = format!("its tag {key} has value {days:?}; allowed: 1 to {most} days; correct or remove the tag");
        return Err(rejected(Failure::InvalidState, text, None));
    };
    let mut tags = row.tags.clone();
    tags.retain(|key, _| key.starts_with(tag::CREATED_FOR) || key == tag::DELETION_SNAPSHOT_DAYS);
    let volume = tags.entry(format!("{}pv/name", tag::CREATED_FOR));
    volume.or_insert_with(|| row.name.clone());
    Ok(Some(NewSnapshot {
        name: match row.detached {
            Some(at) => format!("{}-{at}", row.id),
            None => row.id.to_string(),
        },
        source: row.id.clone(),
        retention_days: Some(retention_days),
        resource_group: row.resource_group.clone().filter(|group| !group.is_empty()),
        tags,
        purpose: SnapshotPurpose::Deletion,
    }))
}
