//! Snapshot groups: snapshots of several disks at one instant.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::create::{is_decided, is_unwritten};
use super::ungroupable::why_apart;
use super::{NewGroup, Snapshotter, compare};
use crate::base::{Deadline, join};
use crate::cloud::view::{Operation, Seen, WaitError};
use crate::cloud::{self as api, CreateSnapshotGroup, DescribeSnapshotGroups, Kind};
use crate::cloud::{TagResources, TagTarget};
use crate::disk::Result;
use crate::disk::attempts::is_final;
use crate::disk::created::until_created;
use crate::disk::error::{Error, cloud, wait};
use crate::disk::ownership::display_name;
use crate::disk::stale_read::{LAG, NotFoundConfirmation, StaleReadGuard, UNSEEN, settled};
use crate::disk::tag_index::{lagging, readable};
use crate::model::{
    ClientToken, DiskId, Snapshot, SnapshotGroup, SnapshotGroupId, SnapshotId, SnapshotStatus, tag,
};

/// Disks that the cloud cuts at one instant.
const MOST: usize = 16;

/// A group whose point in time is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The id.
    pub id: SnapshotGroupId,
    /// When it was cut: the latest of its snapshots' times.
    pub created: Timestamp,
    /// Its snapshots.
    pub snapshots: Vec<Snapshot>,
}

impl Group {
    /// Whether disks can be made from every one of its snapshots.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.snapshots.iter().all(|row| row.available)
    }
}

impl Snapshotter {
    /// The group of this name, begun unless it exists. Answers once all its snapshots are cut.
    ///
    /// # Errors
    /// [`Error::Exists`] when the name belongs to a group of other disks; [`Error::NotGroupable`],
    /// [`Error::NeverAttached`]; [`Error::GroupFailed`]: such a group was never told to anybody, is
    /// deleted, and the next call takes another.
    pub async fn create_group(&self, deadline: Deadline, new: &NewGroup) -> Result<Group> {
        if new.sources.len() > MOST {
            return Err(Error::NotGroupable {
                name: new.name.clone(),
                why: "they are more than 16; make smaller groups",
                source: None,
            });
        }
        loop {
            let id = self.take_group(deadline, new).await?;
            let Some(row) = self.joined(deadline, new, &id).await? else {
                tracing::warn!(group.name = new.name, group.id = %id, "it is gone");
                self.forget_group(new, &id);
                continue;
            };
            let snapshots = self.members(deadline, &row).await?;
            let Some(snapshots) = snapshots else {
                return Err(broken(&row));
            };
            // One that was cut may have been told already, and the others of its group with it.
            let uncut =
                |row: &Snapshot| row.status == SnapshotStatus::Failed && row.created.is_none();
            let never_told = snapshots.iter().any(uncut);
            let Some(group) = whole(&row, snapshots) else {
                return Err(match never_told {
                    true => self.fail_group(deadline, new, &row).await,
                    false => broken(&row),
                });
            };
            self.label_members(deadline, new, &group).await?;
            let trail = &self.group_attempts;
            trail.note(&new.name, |past| past.refused = 0);
            for row in &group.snapshots {
                self.journal.snapshots.made(&row.id, row);
            }
            return Ok(group);
        }
    }

    fn forget_group(&self, new: &NewGroup, id: &SnapshotGroupId) {
        self.group_attempts.note(&new.name, |past| {
            past.missed = None;
            past.gone = Some(id.to_string());
        });
    }

    /// Begins the group, once, whatever became of earlier calls.
    async fn take_group(&self, deadline: Deadline, new: &NewGroup) -> Result<SnapshotGroupId> {
        let past = self.group_attempts.of(&new.name);
        let find = async || {
            let found = self.find_group(deadline, &new.name).await?;
            // An old description still has what this process saw end.
            let live = |row: &SnapshotGroup| past.gone.as_deref() != Some(row.id.as_str());
            Ok(found.filter(live))
        };
        if !self.group_fresh.token_suffices(&new.name)
            && let Some(group) = find().await?
        {
            return Ok(group.id);
        }
        let (cluster, gone) = (self.owner.cluster.as_str(), past.gone.as_deref());
        let name = [cluster, new.name.as_str()].into_iter().chain(gone);
        let token = ClientToken::derive("CreateSnapshotGroup", name.clone());
        let refusal = match self.order_group(deadline, new, token).await {
            Ok(id) => return Ok(id),
            Err(refusal) => refusal,
        };
        let found = match refusal.kind() {
            Kind::TokenMismatch => lagging(deadline, find).await?,
            // The echo of an earlier refusal.
            _ if is_final(&refusal) => find().await?,
            _ => None,
        };
        if let Some(group) = found {
            return Ok(group.id);
        }
        let again =
            refusal.kind() == Kind::TokenMismatch || (is_final(&refusal) && past.refused > 0);
        let outcome = if again {
            // Nothing carries the name, so a token of the whole request is safe.
            let refused = past.refused.to_string();
            let sources = new.sources.iter().map(DiskId::as_str);
            let whole = name.chain(sources).chain([refused.as_str()]);
            let token = ClientToken::derive("CreateSnapshotGroup", whole);
            self.order_group(deadline, new, token).await
        } else {
            Err(refusal)
        };
        match outcome {
            Ok(id) => Ok(id),
            Err(refusal) => Err(self.refuse_group(deadline, new, refusal).await),
        }
    }

    async fn order_group(
        &self,
        deadline: Deadline,
        new: &NewGroup,
        token: ClientToken,
    ) -> api::Result<SnapshotGroupId> {
        let mut tags = new.tags.clone();
        tags.extend(self.owner.tags_of(&new.name));
        let request = CreateSnapshotGroup {
            disks: new.sources.iter().cloned().collect(),
            name: display_name(&new.name),
            resource_group: new.resource_group.clone(),
            tags,
            token,
        };
        let outcome = self.ecs.create_snapshot_group(deadline, &request).await;
        if outcome.as_ref().is_err_and(is_final) {
            let trail = &self.group_attempts;
            trail.note(&new.name, |past| past.refused += 1);
        }
        outcome
    }

    /// The refusal in words that name the disk where the cloud does not.
    async fn refuse_group(&self, deadline: Deadline, new: &NewGroup, refusal: api::Error) -> Error {
        if refusal.has_code("InvalidDiskId.NotFound") || is_unwritten(&refusal) {
            let looks = new
                .sources
                .iter()
                .map(|id| settled(&self.disks, id, deadline));
            for (disk, row) in new.sources.iter().zip(join::all(looks).await) {
                if matches!(row, Ok(None)) {
                    return Error::NoSuchDisk { disk: disk.clone() };
                }
            }
        }
        match refusal.code().and_then(why_apart) {
            Some(why) => Error::NotGroupable {
                name: new.name.clone(),
                why,
                source: Some(refusal),
            },
            None => cloud(step(new))(refusal),
        }
    }

    /// The group of this CSI name; none when there is none yet, or the tag index lags.
    async fn find_group(&self, deadline: Deadline, name: &str) -> Result<Option<SnapshotGroup>> {
        let query = DescribeSnapshotGroups {
            tags: self.owner.tags_of(name),
            ..DescribeSnapshotGroups::default()
        };
        let page = self.ecs.describe_snapshot_groups(deadline, &query).await;
        let look = || format!("look for an earlier group of {name:?}");
        let page = page.map_err(cloud(look()))?;
        readable(&page, "DescribeSnapshotGroups").map_err(cloud(look()))?;
        let rows = page.rows.into_iter();
        Ok(rows.min_by_key(|row| (row.created, row.id.clone())))
    }

    /// Waits until the group shows all its members; none once it can be believed that there is no
    /// such group.
    async fn joined(
        &self,
        deadline: Deadline,
        new: &NewGroup,
        id: &SnapshotGroupId,
    ) -> Result<Option<SnapshotGroup>> {
        let missing = NotFoundConfirmation::new(&self.group_attempts, &new.name, id.as_str());
        let mut doubt = StaleReadGuard::default();
        let joined = |row: &SnapshotGroup| match compare::group(row, &new.sources) {
            None => Some(Ok(row.clone())),
            // A description may have the group before its members.
            Some(differences) => doubt.holds(LAG).then(|| {
                Err(Error::Exists {
                    name: new.name.clone(),
                    existing: format!("snapshot group {id}"),
                    differences,
                })
            }),
        };
        let waited = match until_created(&self.groups, id, deadline, None, missing, joined).await {
            // No call names a missing group.
            Err(WaitError::Unproven { .. }) => Ok(None),
            waited => waited,
        };
        waited.map_err(wait(step(new)))?.transpose()
    }

    /// The snapshots of the group, each cut or failed; none once it can be believed that one is gone.
    async fn members(
        &self,
        deadline: Deadline,
        row: &SnapshotGroup,
    ) -> Result<Option<Vec<Snapshot>>> {
        let waits = row.members.iter().map(|member| {
            let mut doubt = StaleReadGuard::default();
            let decided = move |seen: Seen<Snapshot>| match seen {
                Seen::Row(row) => {
                    doubt.ends();
                    is_decided(&row).then(|| Some(Snapshot::clone(&row)))
                }
                Seen::Missing { .. } => doubt.holds(UNSEEN).then_some(None),
                Seen::Failed(_) => None,
            };
            self.rows
                .until_done(&member.snapshot, deadline, Operation::Snapshot, decided)
        });
        let rows: std::result::Result<Option<Vec<_>>, _> =
            join::all(waits).await.into_iter().collect();
        rows.map_err(wait(format!("see the snapshots of group {} cut", row.id)))
    }

    /// A group that failed before anybody was told of it goes, so that the name is free again.
    async fn fail_group(&self, deadline: Deadline, new: &NewGroup, row: &SnapshotGroup) -> Error {
        let next = match self.ecs.delete_snapshot_group(deadline, &row.id).await {
            Ok(kept) if kept.is_empty() => {
                self.forget_group(new, &row.id);
                "it is deleted, and another one is taken with the next call"
            }
            Ok(_) | Err(_) => "it is deleted with the next call",
        };
        Error::GroupFailed {
            group: row.id.clone(),
            members: ids(row),
            next,
        }
    }

    /// Gives the snapshots the tags by which they are listed as ours, and as members, where they do not
    /// carry them yet.
    async fn label_members(&self, deadline: Deadline, new: &NewGroup, group: &Group) -> Result<()> {
        let mut tags = new.tags.clone();
        tags.extend(self.owner.tags());
        tags.insert(tag::GROUP.to_owned(), group.id.to_string());
        let bare = group.snapshots.iter().filter(|row| {
            let carried = tags.iter().all(|(key, _)| row.tags.contains_key(key));
            !carried
        });
        let bare: Vec<SnapshotId> = bare.map(|row| row.id.clone()).collect();
        if bare.is_empty() {
            return Ok(());
        }
        let request = TagResources {
            targets: TagTarget::Snapshots(bare),
            tags,
        };
        let tagged = self.ecs.tag_resources(deadline, &request).await;
        tagged.map_err(cloud(format!("tag the snapshots of group {}", group.id)))
    }

    /// The group as it stands; none once it can be believed that there is none.
    pub(super) async fn group_row(
        &self,
        deadline: Deadline,
        id: &SnapshotGroupId,
    ) -> Result<Option<SnapshotGroup>> {
        let row = match settled(&self.groups, id, deadline).await {
            // No call names a missing group.
            Err(WaitError::Unproven { .. }) => Ok(None),
            row => row,
        };
        let row = row.map_err(wait(format!("look at snapshot group {id}")))?;
        Ok(row.map(|row| SnapshotGroup::clone(&row)))
    }

    /// The group as it stands, which must have these snapshots where any are given.
    ///
    /// # Errors
    /// [`Error::NoSuchGroup`]; [`Error::OtherMembers`]; [`Error::NotCut`] before its point in time is
    /// cut; [`Error::GroupFailed`].
    pub async fn group(
        &self,
        deadline: Deadline,
        id: &SnapshotGroupId,
        members: &BTreeSet<SnapshotId>,
    ) -> Result<Group> {
        let group = id.clone();
        let row = self.group_row(deadline, id).await?;
        let row = row.ok_or(Error::NoSuchGroup { group })?;
        self.refuse_other_members(deadline, &row, members).await?;
        let looks = row.members.iter();
        let looks = looks.map(|member| settled(&self.rows, &member.snapshot, deadline));
        let mut snapshots = Vec::new();
        for look in join::all(looks).await {
            let look = look.map_err(wait(format!("look at the snapshots of group {id}")))?;
            let member = look.ok_or_else(|| broken(&row))?;
            snapshots.push(Snapshot::clone(&member));
        }
        let failed = snapshots
            .iter()
            .any(|row| row.status == SnapshotStatus::Failed);
        if !failed && (snapshots.is_empty() || !snapshots.iter().all(is_decided)) {
            let what = format!("snapshot group {id}");
            return Err(Error::NotCut { what });
        }
        whole(&row, snapshots).ok_or_else(|| broken(&row))
    }
}

/// A group that may have been told to somebody, and is not whole any more.
fn broken(row: &SnapshotGroup) -> Error {
    Error::GroupFailed {
        group: row.id.clone(),
        members: ids(row),
        next: "delete it and take another",
    }
}

/// The group, if none of its snapshots has failed.
fn whole(row: &SnapshotGroup, mut snapshots: Vec<Snapshot>) -> Option<Group> {
    let well = |row: &Snapshot| row.status != SnapshotStatus::Failed;
    if !snapshots.iter().all(well) {
        return None;
    }
    for snapshot in &mut snapshots {
        snapshot.group = Some(row.id.clone());
    }
    let created = snapshots.iter().filter_map(|row| row.created).max()?;
    Some(Group {
        id: row.id.clone(),
        created,
        snapshots,
    })
}

fn ids(row: &SnapshotGroup) -> String {
    let member = |member: &crate::model::GroupMember| match &member.source {
        Some(disk) => format!("snapshot {} of disk {disk}", member.snapshot),
        None => format!("snapshot {}", member.snapshot),
    };
    let members: Vec<_> = row.members.iter().map(member).collect();
    members.join(", ")
}

fn step(new: &NewGroup) -> String {
    let sources: Vec<_> = new.sources.iter().map(DiskId::as_str).collect();
    let sources = sources.join(", ");
    format!("take snapshot group {:?} of disks {sources}", new.name)
}
