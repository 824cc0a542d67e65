//! Deleting snapshot groups.

use super::Snapshotter;
use std::collections::BTreeSet;

use super::delete::hold_reason;
use crate::base::{Deadline, join_all};
use crate::cloud::view::ConfirmedAbsent;
use crate::cloud::{Kind, UndeletedSnapshot};
use crate::disk::Result;
use crate::disk::error::{cloud, refused};
use crate::disk::read::read;
use crate::model::{Failure, SnapshotGroup, SnapshotGroupId, SnapshotId};

impl Snapshotter {
    /// Deletes the group with its snapshots, however far they are. One that is not there is success.
    /// Where `members` are given, they must be the group's.
    ///
    /// # Errors
    /// [`Error::Refused`](super::super::Error::Refused) for one that is not ours and for other members, when nothing was
    /// done, and when some snapshots had to stay: the group stays with them.
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
                Err(error) if self.are_gone(deadline, members).await => {
                    tracing::info!(group.id = %id, %error, "all snapshots of the group are deleted");
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            self.owner
                .require(&format!("snapshot group {id}"), &row.tags)?;
            self.refuse_other_members(deadline, &row, members).await?;
            match self.ecs.delete_snapshot_group(deadline, id).await {
                Ok(kept) if kept.is_empty() => {
                    self.group_is_deleted(&row);
                    return Ok(());
                }
                Ok(kept) => {
                    let kept = words(&kept);
                    let text = format!("snapshot group {id} is not deleted whole: {kept}");
                    return Err(refused(Failure::GroupInUse, text, None));
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

    /// The cloud has deleted the group with all its snapshots.
    pub(super) fn group_is_deleted(&self, row: &SnapshotGroup) {
        let _ = self.groups.deleted(&row.id, Ok(()));
        for member in &row.members {
            let _ = self.creator.deleted(&member.snapshot, Ok(()));
            self.journal.snapshots.deleted(&member.snapshot);
        }
    }

    /// Whether these snapshots, at least one, certainly do not exist: then neither does their group, also where no other
    /// group could show that it does not.
    async fn are_gone(&self, deadline: Deadline, members: &BTreeSet<SnapshotId>) -> bool {
        let members = members
            .iter()
            .map(|id| read(&self.creator.rows, deadline, id));
        let rows = join_all(members).await;
        !rows.is_empty() && rows.iter().all(|row| matches!(row, Ok(None)))
    }

    /// Compares the group's snapshots with those that the caller names. Some of its own may be gone by
    /// now; a caller that names none is not compared.
    pub(super) async fn refuse_other_members(
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
        let looks = others
            .iter()
            .map(|id| read(&self.creator.rows, deadline, id));
        for (id, look) in others.iter().zip(join_all(looks).await) {
            if look?.is_some_and(|other| other.group.as_ref() != Some(&row.id)) {
                differences.push(format!("{id} is in snapshot_ids and not in the group"));
            }
        }
        if differences.is_empty() {
            return Ok(());
        }
        let text = format!(
            "snapshot_ids do not fit snapshot group {}: {}",
            row.id,
            differences.join("; ")
        );
        Err(refused(Failure::GroupMembersMismatch, text, None))
    }
}

fn words(kept: &[UndeletedSnapshot]) -> String {
    let word = |kept: &UndeletedSnapshot| {
        let why = match hold_reason(kept.condition()) {
            Some(why) => why,
            None if kept.message.is_empty() => "the cloud does not say why",
            None => &kept.message,
        };
        format!("snapshot {} stays ({}): {why}", kept.snapshot, kept.code)
    };
    kept.iter().map(word).collect::<Vec<_>>().join("; ")
}
