//! Snapshot groups: snapshots of several disks at one instant.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::create::{is_decided, not_captured};
use super::{Snapshotter, compare};
use crate::base::{Deadline, join_all};
use crate::cloud::view::Operation;
use crate::cloud::{self, Condition, CreateSnapshotGroup, TagResources, TagTarget};
use crate::disk::Result;
use crate::disk::create_once::Call;
use crate::disk::error::{Error, cloud, refused, wait};
use crate::disk::ownership::{Owner, display_name};
use crate::disk::read::read;
use crate::disk::stale_read::{READ_LAG, StaleReadGuard};
use crate::model::{
    ClientToken, DiskId, Failure, GroupMember, Snapshot, SnapshotGroup, SnapshotGroupId,
    SnapshotId, SnapshotStatus, Tags, tag,
};

/// Disks that the cloud cuts at one instant.
const MOST: usize = 16;
const AGAIN: &str = "delete it and take another";
const TOO_MANY: &str = "they are more than 16; make smaller groups";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGroup {
    /// The CSI name; the same name is the same group.
    pub name: String,
    pub sources: BTreeSet<DiskId>,
    /// Resource group to bill it to; none is the account's default.
    pub resource_group: Option<String>,
    /// Tags of the group and of its snapshots, beside the driver's own.
    pub tags: Tags,
}

impl NewGroup {
    fn request(&self, owner: &Owner, token: ClientToken) -> CreateSnapshotGroup {
        let mut tags = self.tags.clone();
        tags.extend(owner.tags_of(&self.name));
        CreateSnapshotGroup {
            disks: self.sources.iter().cloned().collect(),
            name: display_name(&self.name),
            resource_group: self.resource_group.clone(),
            tags,
            token,
        }
    }
}

/// A group whose point in time is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub id: SnapshotGroupId,
    /// When it was cut: the latest of its snapshots' times.
    pub created: Timestamp,
    pub snapshots: Vec<Snapshot>,
}

impl Group {
    /// Whether disks can be made from every one of its snapshots.
    pub fn is_ready(&self) -> bool {
        self.snapshots.iter().all(|row| row.available)
    }
}

impl Snapshotter {
    /// The group of this name, created unless it exists. Returns once all its snapshots are cut.
    ///
    /// # Errors
    /// [`Error::Exists`] if the name belongs to a group of other disks; [`Error::Refused`],
    /// [`Error::NeverAttached`]; [`Error::CreationUnresolved`] while an earlier call may have taken effect;
    /// `GROUP_FAILED`: if such a group was reported to nobody, it is replaced, and the next call returns the other.
    pub async fn create_group(&self, deadline: Deadline, new: &NewGroup) -> Result<Group> {
        if new.sources.len() > MOST {
            return Err(apart(new, TOO_MANY, None));
        }
        let mut call = self.groups.call(&new.name, self.owner.tags_of(&new.name));
        let outcome = self.find_or_create_group(deadline, new, &mut call).await;
        self.groups
            .conclude(deadline, &call, |group| &group.id, outcome)
            .await
    }

    async fn find_or_create_group(
        &self,
        deadline: Deadline,
        new: &NewGroup,
        call: &mut Call,
    ) -> Result<Group> {
        let row = loop {
            let request = |token| new.request(&self.owner, token);
            let id = match self.groups.find_or_order(deadline, call, request).await? {
                Ok(id) => id,
                Err(refusal) => return Err(self.refuse_group(deadline, new, refusal).await),
            };
            if let Some(row) = self.until_joined(deadline, new, call, &id).await? {
                break row;
            }
        };
        let snapshots = self.members(deadline, &row).await?.unwrap_or_default();
        // A snapshot that was cut may have been reported already, and the others of its group with it.
        let uncut = |row: &Snapshot| row.status == SnapshotStatus::Failed && row.created.is_none();
        if snapshots.iter().any(uncut) {
            return Err(self.replace_group(deadline, new, call, &row).await);
        }
        let Some(group) = whole(&row, snapshots) else {
            self.groups.attempts.resolve(&call.key, None, false);
            return Err(broken(&row, AGAIN));
        };
        self.label_members(deadline, new, &group).await?;
        for row in &group.snapshots {
            self.journal.snapshots.created(&row.id, row);
        }
        Ok(group)
    }

    /// The refusal in words that name the disk where the cloud does not.
    async fn refuse_group(
        &self,
        deadline: Deadline,
        new: &NewGroup,
        refusal: cloud::Error,
    ) -> Error {
        if let Condition::NoSuchDisk | Condition::NeverAttached = refusal.condition() {
            let looks = new.sources.iter().map(|id| read(&self.disks, deadline, id));
            for (disk, row) in new.sources.iter().zip(join_all(looks).await) {
                if matches!(row, Ok(None)) {
                    return Error::NoSuchDisk { disk: disk.clone() };
                }
            }
        }
        match why_apart(refusal.condition()) {
            Some(why) => apart(new, why, Some(refusal)),
            None => cloud(step(new))(refusal),
        }
    }

    /// Waits until the group has all its members; none if it certainly does not exist any more.
    async fn until_joined(
        &self,
        deadline: Deadline,
        new: &NewGroup,
        call: &mut Call,
        id: &SnapshotGroupId,
    ) -> Result<Option<SnapshotGroup>> {
        let mut incomplete = StaleReadGuard::default();
        let joined = |row: &SnapshotGroup| match compare::group(row, &new.sources) {
            None => Some(Ok(row.clone())),
            // A response may have the group before its members.
            Some(differences) => incomplete.holds(READ_LAG).then(|| {
                Err(Error::Exists {
                    name: new.name.clone(),
                    existing: format!("snapshot group {id}"),
                    differences,
                })
            }),
        };
        let groups = &self.groups;
        let waited = groups.until_created(deadline, call, id, None, joined).await;
        waited.map_err(wait(step(new)))?.transpose()
    }

    /// The snapshots of the group, each cut or failed; none if one of them certainly does not exist any more.
    async fn members(
        &self,
        deadline: Deadline,
        row: &SnapshotGroup,
    ) -> Result<Option<Vec<Snapshot>>> {
        let waits = row.members.iter().map(async |member| {
            let (id, operation) = (&member.snapshot, Some(Operation::Snapshot.into()));
            let decided = |row: &Snapshot| is_decided(row).then(|| row.clone());
            let waited = self.creator.decided(deadline, id, operation, decided);
            waited.await
        });
        let rows: std::result::Result<Option<Vec<_>>, _> =
            join_all(waits).await.into_iter().collect();
        rows.map_err(wait(format!("see the snapshots of group {} cut", row.id)))
    }

    /// Replaces a group that failed before a caller knew of it. The replacement is ordered before the deletion: no call
    /// names a missing group, so that after a restart only another group can prove that the failed one was deleted.
    async fn replace_group(
        &self,
        deadline: Deadline,
        new: &NewGroup,
        call: &mut Call,
        row: &SnapshotGroup,
    ) -> Error {
        let attempts = &self.groups.attempts;
        call.past = attempts.of(&call.key);
        call.past.gone = Some(row.id.to_string());
        let request = |token| new.request(&self.owner, token);
        let replaced = self.groups.find_or_order(deadline, call, request).await;
        // Until the failed one is deleted, the next call must find it.
        attempts.note(&call.key, |past| past.created = Some(row.id.to_string()));
        let (replacement, refusal) = match replaced {
            Ok(Ok(id)) => (Some(id), None),
            Ok(Err(refusal))
                if attempts.of(&call.key).unresolved.is_none()
                    && refusal.failure().kind().is_final() =>
            {
                (None, Some(refusal))
            }
            Ok(Err(refusal)) => return self.refuse_group(deadline, new, refusal).await,
            Err(error) => return error,
        };
        let next = match self.ecs.delete_snapshot_group(deadline, &row.id).await {
            Ok(kept) if kept.is_empty() => {
                self.group_is_deleted(row);
                attempts.forget(&call.key, row.id.as_str());
                if let Some(id) = replacement {
                    attempts.resolve(&call.key, Some(id.as_str()), false);
                }
                "it is deleted, and another one is being taken"
            }
            Ok(_) | Err(_) => "it is deleted with the next call",
        };
        match refusal {
            Some(refusal) => self.refuse_group(deadline, new, refusal).await,
            None => broken(row, next),
        }
    }

    /// Gives the snapshots the tags by which they are listed as ours, and as members, where they do not carry them yet.
    async fn label_members(&self, deadline: Deadline, new: &NewGroup, group: &Group) -> Result<()> {
        let mut tags = new.tags.clone();
        tags.extend(self.owner.tags());
        tags.insert(tag::GROUP.to_owned(), group.id.to_string());
        let is_bare = |row: &&Snapshot| tags.keys().any(|key| !row.tags.contains_key(key));
        let bare = group.snapshots.iter().filter(is_bare);
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

    /// The group as it stands, which must have these snapshots where any are given.
    ///
    /// # Errors
    /// [`Error::Refused`] if there certainly is none, for other members, before its point in time
    /// is cut, and if it failed.
    pub async fn group(
        &self,
        deadline: Deadline,
        id: &SnapshotGroupId,
        members: &BTreeSet<SnapshotId>,
    ) -> Result<Group> {
        let row = read(&self.groups.rows, deadline, id).await?;
        let row = row.ok_or_else(|| {
            let text = format!(
                "snapshot group {id} does not exist in this region, or this account may not see it"
            );
            refused(Failure::NoSuchGroup, text, None)
        })?;
        self.refuse_other_members(deadline, &row, members).await?;
        let looks = row.members.iter();
        let looks = looks.map(|member| read(&self.creator.rows, deadline, &member.snapshot));
        let mut snapshots = Vec::new();
        for look in join_all(looks).await {
            snapshots.push(look?.ok_or_else(|| broken(&row, AGAIN))?);
        }
        let failed = snapshots
            .iter()
            .any(|row| row.status == SnapshotStatus::Failed);
        if !failed && (snapshots.is_empty() || !snapshots.iter().all(is_decided)) {
            return Err(not_captured(&format!("snapshot group {id}")));
        }
        whole(&row, snapshots).ok_or_else(|| broken(&row, AGAIN))
    }
}

fn apart(new: &NewGroup, why: &str, source: Option<cloud::Error>) -> Error {
    let name = &new.name;
    let text = format!("the volumes of {name:?} cannot be snapshotted together: {why}");
    refused(Failure::NotGroupable, text, source)
}

/// Why disks cannot be cut at one instant.
fn why_apart(condition: Condition) -> Option<&'static str> {
    Some(match condition {
        Condition::NotInSameZone => "they are in several zones",
        Condition::TooManyGroupDisks => TOO_MANY,
        Condition::GroupTooLarge => "they have more than 32 TiB together; make smaller groups",
        Condition::SharedDisk => {
            "one of them can be attached to several nodes; take its snapshot alone"
        }
        Condition::MixedCategories | Condition::CategoryNotSnapshottable => {
            "all must be of the ESSD family (cloud_essd, cloud_auto, cloud_essd_entry), and if one is \
             regional, all must be"
        }
        Condition::NeverAttached => {
            "one of them was never attached, and the cloud supported snapshots only of disks that once \
             were; start a pod that uses the volume, then try again"
        }
        Condition::RegionUnsupported | Condition::FeatureNotEnabled => {
            "the cloud has no snapshot groups in this region, or not for this account"
        }
        _ => return None,
    })
}

/// The error for a group that is not whole, or not any more.
fn broken(row: &SnapshotGroup, next: &str) -> Error {
    let member = |member: &GroupMember| match &member.source {
        Some(disk) => format!("snapshot {} of disk {disk}", member.snapshot),
        None => format!("snapshot {}", member.snapshot),
    };
    let members: Vec<_> = row.members.iter().map(member).collect();
    let (group, members) = (&row.id, members.join(", "));
    let text = format!("snapshot group {group} failed in the cloud: {members}; {next}");
    refused(Failure::GroupFailed, text, None)
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

fn step(new: &NewGroup) -> String {
    let sources: Vec<_> = new.sources.iter().map(DiskId::as_str).collect();
    let sources = sources.join(", ");
    format!("take snapshot group {:?} of disks {sources}", new.name)
}
