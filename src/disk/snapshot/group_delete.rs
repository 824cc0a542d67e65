//! Deletes snapshot groups.

use super::Snapshotter;
use std::collections::BTreeSet;

use super::delete::hold_reason;
use crate::base::{Deadline, join_all};
use crate::cloud::view::ConfirmedAbsent;
use crate::cloud::{Kind, UndeletedSnapshot};
use crate::disk::Result;
use crate::disk::error::{cloud, rejected};
use crate::disk::read::read;
use crate::model::{Failure, SnapshotGroup, SnapshotGroupId, SnapshotId};

impl Snapshotter {
    /// Deletes the group with its snapshots; succeeds if it does not exist. `members`, if given, must be those of the group.
    ///
    /// # Errors
    /// [`Error::Rejected`](super::super::Error::Rejected) if this cluster does not own the group, if it has other members,
    /// or if the cloud keeps some snapshots, and the group with them.
    pub async fn delete_group(
        &self,
        deadline: Deadline,
        id: &SnapshotGroupId,
        members: &BTreeSet<SnapshotId>,
    ) -> Result<()> {
        let step = || format!("delete snapshot group {id}");
        loop {
            let row = match read(&self.groups.rows, deadline, id).await {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(()),
                Err(error) if self.are_deleted(deadline, members).await => {
                    tracing::info!(group.id = %id, %error, "all snapshots of the group are deleted");
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            self.owner
                .check_owned(&format!("snapshot group {id}"), &row.tags)?;
            self.check_members(deadline, &row, members).await?;
            match self.ecs.delete_snapshot_group(deadline, id).await {
                Ok(kept) if kept.is_empty() => {
                    self.record_group_deleted(&row);
                    return Ok(());
                }
                Ok(kept) => {
                    let kept = kept_reasons(&kept);
                    let text = format!("snapshot group {id} is not deleted completely: {kept}");
                    return Err(rejected(Failure::GroupInUse, text, None));
                }
                Err(error) if ConfirmedAbsent::from_error(&error).is_some() => return Ok(()),
                Err(error) if error.kind() == Kind::Conflict => {
                    let waited = self
                        .groups
                        .rows
                        .wait_until(id, deadline, |_| Some(()))
                        .await;
                    waited.map_err(|_| cloud(step())(error))?;
                }
                Err(error) => return Err(cloud(step())(error)),
            }
        }
    }

    pub(super) fn record_group_deleted(&self, row: &SnapshotGroup) {
        let _ = self.groups.mark_deleted(&row.id, Ok(()));
        for member in &row.members {
            let _ = self.creator.mark_deleted(&member.snapshot, Ok(()));
            self.journal.snapshots.record_deleted(&member.snapshot);
        }
    }

    /// Whether all of these snapshots certainly do not exist. Then the group does not either, even if no other group proves
    /// its absence. False without snapshots.
    async fn are_deleted(&self, deadline: Deadline, members: &BTreeSet<SnapshotId>) -> bool {
        let members = members
            .iter()
            .map(|id| read(&self.creator.rows, deadline, id));
        let rows = join_all(members).await;
        !rows.is_empty() && rows.iter().all(|row| matches!(row, Ok(None)))
    }

    /// Compares the group's snapshots with those in the request, some of which may already be deleted. An empty request
    /// matches any group.
    pub(super) async fn check_members(
        &self,
        deadline: Deadline,
        row: &SnapshotGroup,
        members: &BTreeSet<SnapshotId>,
    ) -> Result<()> {
        if members.is_empty() {
            return Ok(());
        }
        let own = row.members.iter().map(|member| member.snapshot.clone());
        let own: BTreeSet<SnapshotId> = own.collect();
        let mut differences = Vec::new();
        for id in own.difference(members) {
            differences.push(format!("{id} is in the group and not in snapshot_ids"));
        }
        let others: Vec<_> = members.difference(&own).collect();
        let reads = others
            .iter()
            .map(|id| read(&self.creator.rows, deadline, id));
        for (id, found) in others.iter().zip(join_all(reads).await) {
            if found?.is_some_and(|other| other.group.as_ref() != Some(&row.id)) {
                differences.push(format!("{id} is in snapshot_ids and not in the group"));
            }
        }
        if differences.is_empty() {
            return Ok(());
        }
        let text = format!(
            "snapshot_ids do not match snapshot group {}: {}",
            row.id,
            differences.join("; ")
        );
        Err(rejected(Failure::GroupMembersMismatch, text, None))
    }
}

fn kept_reasons(kept: &[UndeletedSnapshot]) -> String {
    let reason = |kept: &UndeletedSnapshot| {
        let why = match hold_reason(kept.condition()) {
            Some(why) => why,
            None if kept.message.is_empty() => "the cloud reports no reason",
            None => &kept.message,
        };
        format!("snapshot {} is kept ({}): {why}", kept.snapshot, kept.code)
    };
    kept.iter().map(reason).collect::<Vec<_>>().join("; ")
}
