use super::Snapshotter;
use std::collections::BTreeSet;

use ecs::{Kind, UndeletedSnapshot};

use super::delete::hold_reason;
use crate::base::{Deadline, join_all};
use crate::disk::Result;
use crate::disk::backoff::Backoff;
use crate::disk::error::{self, rejected, wait};
use crate::disk::evidence::names_missing;
use crate::disk::read::read;
use crate::model::{Failure, SnapshotGroup, SnapshotGroupId, SnapshotId, tag};

impl Snapshotter {
    /// Deletes the group with its snapshots; succeeds if it does not exist. `members`, if given, must be those of the
    /// group.
    ///
    /// # Errors
    /// [`Error::Rejected`](super::super::Error::Rejected) if this cluster does not own the group, if it has other
    /// members, or if the cloud keeps some snapshots, and the group with them.
    pub async fn delete_group(
        &self,
        deadline: Deadline,
        id: &SnapshotGroupId,
        members: &BTreeSet<SnapshotId>,
    ) -> Result<()> {
        let step = || format!("delete snapshot group {id}");
        let mut backoff = Backoff::default();
        let groups = &self.groups.rows;
        loop {
            let key = groups.key();
            let mut own = members.clone();
            // Without a response to an earlier deletion, the next one shows whether the group still exists.
            if !groups.is_deletion_lost(id) {
                let row = match read(groups, deadline, id).await {
                    Ok(Some(row)) => row,
                    Ok(None) => return self.delete_members(deadline, id, members).await,
                    // No other group proves its absence, but its members can.
                    Err(error) if error.failure() == Failure::AbsenceUnproven && !members.is_empty() => {
                        tracing::info!(group.id = %id, %error, "deleting the snapshots of the group instead");
                        return self.delete_members(deadline, id, members).await;
                    }
                    Err(error) => return Err(error),
                };
                self.shared
                    .owner
                    .check_owned(&format!("snapshot group {id}"), &row.tags)?;
                self.check_members(deadline, &row, members).await?;
                own.extend(row.members.iter().map(|member| member.snapshot.clone()));
            }
            let mut kept = Vec::new();
            let call = async {
                kept = self.shared.ecs.delete_snapshot_group(deadline, id).await?;
                match kept.is_empty() {
                    true => Ok(()),
                    false => Err(ecs::Error::new(Kind::Precondition, "DeleteSnapshotGroup")),
                }
            };
            let rejection = match groups.delete(id, key, call).await {
                Err(_) if !kept.is_empty() => {
                    let kept = kept_reasons(&kept);
                    let text = format!("snapshot group {id} is not deleted completely: {kept}");
                    return Err(rejected(Failure::GroupInUse, text, None));
                }
                // Named as missing after a lost response, it was deleted by an earlier attempt.
                Ok(()) | Err(_) if groups.is_absent(id) => {
                    self.record_deleted(id, &own);
                    return Ok(());
                }
                Ok(()) => None,
                Err(error) if error.kind() == Kind::Conflict || names_missing(&error) => Some(error),
                Err(error) => return Err(error::cloud(step())(error)),
            };
            if backoff.wait(deadline).await.is_err() {
                return Err(match rejection {
                    Some(rejection) => error::cloud(step())(rejection),
                    None => wait(step())(groups.unproven(id, true)),
                });
            }
        }
    }

    /// Records that the group was deleted with its snapshots.
    fn record_deleted(&self, group: &SnapshotGroupId, members: &BTreeSet<SnapshotId>) {
        self.groups.rows.record_deleted(group);
        for member in members {
            self.creator.rows.record_deleted(member);
            self.shared.journal.snapshots.record_deleted(member);
        }
    }

    /// Deletes the snapshots of a group that does not exist, or that no response contains. Succeeds once all certainly
    /// do not exist.
    async fn delete_members(
        &self,
        deadline: Deadline,
        group: &SnapshotGroupId,
        members: &BTreeSet<SnapshotId>,
    ) -> Result<()> {
        let delete = members
            .iter()
            .map(async |id| match read(&self.creator.rows, deadline, id).await? {
                None => Ok(()),
                Some(row) => {
                    let of_group = row.tags.get(tag::GROUP).is_none_or(|tag| tag == group.as_str());
                    if !of_group {
                        return Ok(());
                    }
                    self.shared.owner.check_owned(&format!("snapshot {id}"), &row.tags)?;
                    self.discard(deadline, id).await
                }
            });
        join_all(delete).await.into_iter().collect()
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
        let reads = others.iter().map(|id| read(&self.creator.rows, deadline, id));
        for (id, found) in others.iter().zip(join_all(reads).await) {
            let found = match found {
                // A snapshot that is not visible cannot belong to another group.
                Err(error) if error.failure() == Failure::AbsenceUnproven => None,
                found => found?,
            };
            if found.is_some_and(|other| tag::group_of(&other).as_ref() != Some(&row.id)) {
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
