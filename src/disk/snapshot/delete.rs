//! Deleting snapshots.

use super::Snapshotter;
use crate::base::Deadline;
use crate::cloud::{self, Condition, Kind};
use crate::disk::Result;
use crate::disk::error::{Error, cloud, refused};
use crate::disk::read::{read, read_as};
use crate::model::{Failure, SnapshotId};

impl Snapshotter {
    /// Deletes the snapshot. One that is not there is success. Disks made from it stay as they are.
    ///
    /// # Errors
    /// [`Error::Refused`], when nothing was done.
    pub async fn delete(&self, deadline: Deadline, id: &SnapshotId) -> Result<()> {
        let Some(row) = read(&self.creator.rows, deadline, id).await? else {
            self.journal.snapshots.deleted(id);
            return Ok(());
        };
        if let Some(group) = &row.group
            && read(&self.groups.rows, deadline, group).await?.is_some()
        {
            // It may have gone together with its group.
            let last = read_as(&self.creator.rows, deadline, id, |_| false).await?;
            if last.is_none() {
                return Ok(());
            }
            let text = format!(
                "snapshot {id} is not deleted: it is part of snapshot group {group}, which holds its snapshots together"
            );
            return Err(refused(Failure::SnapshotInGroup, text, None));
        }
        self.owner.require(&format!("snapshot {id}"), &row.tags)?;
        self.discard(deadline, id).await
    }

    pub(in crate::disk) async fn delete_once(
        &self,
        deadline: Deadline,
        id: &SnapshotId,
    ) -> cloud::Result<()> {
        let outcome = self.ecs.delete_snapshot(deadline, id).await;
        self.creator.deleted(id, outcome)
    }

    /// Deletes a snapshot that is known to be ours.
    pub(super) async fn discard(&self, deadline: Deadline, id: &SnapshotId) -> Result<()> {
        loop {
            match self.delete_once(deadline, id).await {
                Ok(()) => break,
                // Another operation is in progress: poll again.
                Err(error) if error.kind() == Kind::Conflict => {
                    let waited = self
                        .creator
                        .rows
                        .wait_until(id, deadline, |_| Some(()))
                        .await;
                    waited.map_err(|_| cloud(step(id))(error))?;
                }
                Err(error) => return Err(held(id, error)),
            }
        }
        self.journal.snapshots.deleted(id);
        Ok(())
    }
}

/// Who keeps the snapshot, where the cloud says so.
fn held(id: &SnapshotId, error: cloud::Error) -> Error {
    match hold_reason(error.condition()) {
        Some(why) => {
            let text = format!("snapshot {id} is not deleted: {why}");
            refused(error.failure(), text, error)
        }
        None => cloud(step(id))(error),
    }
}

/// What keeps a snapshot from being deleted.
pub(super) fn hold_reason(condition: Condition) -> Option<&'static str> {
    Some(match condition {
        Condition::SnapshotLocked => "it is locked",
        Condition::UsedByImage => "an image was made from it",
        Condition::UsedByDisk => "disks were made from it",
        Condition::SnapshotShared => "it is shared with other accounts",
        Condition::SnapshotManaged => "another product of the cloud manages it",
        _ => return None,
    })
}

fn step(id: &SnapshotId) -> String {
    format!("delete snapshot {id}")
}
