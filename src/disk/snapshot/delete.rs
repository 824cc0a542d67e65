use ecs::{Condition, Kind};

use super::Snapshotter;
use crate::base::Deadline;
use crate::disk::Result;
use crate::disk::backoff::Backoff;
use crate::disk::error::{cloud, rejected, wait};
use crate::disk::evidence::names_missing;
use crate::disk::read::{read, read_in_state};
use crate::model::{Failure, SnapshotId, tag};

impl Snapshotter {
    /// Deletes the snapshot; succeeds if it does not exist. Fails if it is in a group, in use, or not owned by this
    /// cluster.
    pub async fn delete(&self, deadline: Deadline, id: &SnapshotId) -> Result<()> {
        if self.creator.rows.is_deletion_lost(id) {
            return self.discard(deadline, id).await;
        }
        let Some(row) = read(&self.creator.rows, deadline, id).await? else {
            self.shared.journal.snapshots.record_deleted(id);
            return Ok(());
        };
        if let Some(group) = &tag::group_of(&row)
            && read(&self.groups.rows, deadline, group).await?.is_some()
        {
            // The snapshot may have been deleted with its group.
            let last = read_in_state(&self.creator.rows, deadline, id, |_| false).await;
            if matches!(last, Ok(None)) {
                return Ok(());
            }
            let text =
                format!("snapshot {id} is not deleted: it is part of snapshot group {group}; delete the group instead");
            return Err(rejected(Failure::SnapshotInGroup, text, None));
        }
        self.shared.owner.check_owned(&format!("snapshot {id}"), &row.tags)?;
        self.discard(deadline, id).await
    }

    /// Sends one deletion. A snapshot that the cloud names as missing counts as deleted.
    pub(in crate::disk) async fn delete_once(&self, deadline: Deadline, id: &SnapshotId) -> ecs::Result<()> {
        let rows = &self.creator.rows;
        let call = self.shared.ecs.delete_snapshot(deadline, id);
        match rows.delete(id, rows.key(), call).await {
            Err(error) if names_missing(&error) => Ok(()),
            outcome => outcome,
        }
    }

    /// Deletes a snapshot that was read, and is owned by this cluster.
    pub(super) async fn discard(&self, deadline: Deadline, id: &SnapshotId) -> Result<()> {
        let rows = &self.creator.rows;
        let mut backoff = Backoff::default();
        loop {
            let rejection = match self.delete_once(deadline, id).await {
                Ok(()) if rows.is_absent(id) => break,
                // Named as missing, or the access key has changed: a read decides.
                Ok(()) => match rows.confirm(deadline, id).await {
                    Ok(None) => break,
                    Ok(Some(_)) => None,
                    Err(error) => return Err(wait(step(id))(error)),
                },
                // Another operation is in progress.
                Err(error) if error.kind() == Kind::Conflict => Some(error),
                Err(error) => {
                    let Some(why) = hold_reason(error.condition()) else {
                        return Err(cloud(step(id))(error));
                    };
                    let text = format!("snapshot {id} is not deleted: {why}");
                    return Err(rejected(Failure::from(&error), text, error));
                }
            };
            if backoff.wait(deadline).await.is_err() {
                return Err(match rejection {
                    Some(rejection) => cloud(step(id))(rejection),
                    None => wait(step(id))(rows.unproven(id, true)),
                });
            }
        }
        self.shared.journal.snapshots.record_deleted(id);
        Ok(())
    }
}

pub(super) fn hold_reason(condition: Condition) -> Option<&'static str> {
    Some(match condition {
        Condition::SnapshotLocked => "it is locked",
        Condition::UsedByImage => "an image was created from it",
        Condition::UsedByDisk => "disks were created from it",
        Condition::SnapshotShared => "it is shared with other accounts",
        Condition::SnapshotManaged => "another product of the cloud manages it",
        _ => return None,
    })
}

fn step(id: &SnapshotId) -> String {
    format!("delete snapshot {id}")
}
