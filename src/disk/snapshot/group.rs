//! Snapshot groups: snapshots of several disks at one instant.

use std::collections::BTreeSet;

use ecs::poll::Operation;
use ecs::{Condition, CreateSnapshotGroup, TagResources, TagTarget};
use jiff::Timestamp;

use super::Snapshotter;
use super::create::{is_cut_or_failed, not_cut};
use crate::base::{Deadline, join_all};
use crate::disk::Result;
use crate::disk::error::{Error, cloud, rejected, wait};
use crate::disk::evidence::CreateCall;
use crate::disk::ownership::{Owner, display_name};
use crate::disk::read::{read, read_in_state};
use crate::disk::stale_read::{READ_LAG, StaleReadGuard};
use crate::model::{
    ClientToken, DiskId, Failure, GroupMember, Snapshot, SnapshotGroup, SnapshotGroupId, SnapshotId, SnapshotStatus,
    Tags, tag,
};

/// Maximum number of disks in a group (ECS, `CreateSnapshotGroup`).
const MAX_DISKS: usize = 16;
const RECREATE: &str = "delete it and create another";
const TOO_MANY: &str = "they are more than 16; create smaller groups";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGroupSnapshot {
    /// The CSI name, which identifies the group.
    pub name: String,
    pub sources: BTreeSet<DiskId>,
    /// `None` for the account's default.
    pub resource_group: Option<String>,
    /// Tags of the group and of its snapshots, in addition to the driver's tags.
    pub tags: Tags,
}

impl NewGroupSnapshot {
    fn request(&self, owner: &Owner, token: ClientToken) -> CreateSnapshotGroup {
        let mut tags = self.tags.clone();
        tags.extend(owner.name_tags(&self.name));
        CreateSnapshotGroup {
            disks: self.sources.iter().cloned().collect(),
            name: display_name(&self.name),
            resource_group: self.resource_group.clone(),
            tags,
            token,
        }
    }
}

/// A snapshot group whose snapshots are all cut (CSI `VolumeGroupSnapshot`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSnapshot {
    pub id: SnapshotGroupId,
    /// The latest creation time of its snapshots.
    pub created: Timestamp,
    pub snapshots: Vec<Snapshot>,
}

impl GroupSnapshot {
    /// Whether disks can be created from all of its snapshots.
    pub fn is_ready(&self) -> bool {
        self.snapshots.iter().all(|row| row.available)
    }
}

impl Snapshotter {
    /// Creates the group of this name unless it exists. Returns once all its snapshots are cut.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if the name belongs to a group of other disks; [`Error::Rejected`],
    /// [`Error::NeverAttached`]; [`Error::CreationUnresolved`] while an earlier call may have taken effect;
    /// `GROUP_FAILED`: a group that no caller received is replaced, and the next call returns the replacement.
    pub async fn create_group(&self, deadline: Deadline, new: &NewGroupSnapshot) -> Result<GroupSnapshot> {
        if new.sources.len() > MAX_DISKS {
            return Err(not_groupable(new, TOO_MANY, None));
        }
        let call = self
            .groups
            .start_call(&new.name, self.shared.owner.name_tags(&new.name));
        let outcome = self.find_or_create_group(deadline, new, &call).await;
        self.groups.finish(deadline, &call, |group| &group.id, outcome).await
    }

    async fn find_or_create_group(
        &self,
        deadline: Deadline,
        new: &NewGroupSnapshot,
        call: &CreateCall,
    ) -> Result<GroupSnapshot> {
        let row = loop {
            let request = |token| new.request(&self.shared.owner, token);
            let id = match self.groups.find_or_create(deadline, call, request).await? {
                Ok(id) => id,
                Err(rejection) => return Err(self.group_error(deadline, new, rejection).await),
            };
            if let Some(row) = self.wait_members(deadline, new, call, &id).await? {
                break row;
            }
        };
        let snapshots = self.members(deadline, &row).await?.unwrap_or_default();
        // If a snapshot was cut, a caller may already have received the group.
        let uncut = |row: &Snapshot| row.status == SnapshotStatus::Failed && row.created.is_none();
        if snapshots.iter().any(uncut) {
            return Err(self.discard_group(deadline, call, &row).await);
        }
        let Some(group) = complete_group(&row, snapshots) else {
            return Err(group_failed(&row, RECREATE));
        };
        self.tag_members(deadline, new, &group).await?;
        for row in &group.snapshots {
            self.shared.journal.snapshots.record_created(&row.id, row);
        }
        Ok(group)
    }

    /// The error for a rejection, with the missing disk if the cloud does not name it.
    async fn group_error(&self, deadline: Deadline, new: &NewGroupSnapshot, rejection: ecs::Error) -> Error {
        if let Condition::NoSuchDisk | Condition::NeverAttached = rejection.condition() {
            // The code does not name the disk.
            let reads = new.sources.iter().map(|id| self.shared.disks.find(deadline, id));
            for (disk, row) in new.sources.iter().zip(join_all(reads).await) {
                if matches!(row, Ok(None)) {
                    return Error::NoSuchDisk { disk: disk.clone() };
                }
            }
        }
        match not_groupable_reason(rejection.condition()) {
            Some(why) => not_groupable(new, why, Some(rejection)),
            None => cloud(step(new))(rejection),
        }
    }

    /// Waits until the group has all its members; `None` if it certainly no longer exists.
    async fn wait_members(
        &self,
        deadline: Deadline,
        new: &NewGroupSnapshot,
        call: &CreateCall,
        id: &SnapshotGroupId,
    ) -> Result<Option<SnapshotGroup>> {
        let mut incomplete = StaleReadGuard::default();
        let joined = |row: &SnapshotGroup| match differences(row, &new.sources) {
            None => Some(Ok(row.clone())),
            // A response may contain the group before its members.
            Some(differences) => incomplete.confirmed_after(READ_LAG).then(|| {
                Err(Error::AlreadyExists {
                    name: new.name.clone(),
                    existing: format!("snapshot group {id}"),
                    differences,
                })
            }),
        };
        let groups = &self.groups;
        let waited = groups.wait_created(deadline, call, id, None, joined).await;
        waited.map_err(wait(step(new)))?.transpose()
    }

    /// The snapshots of the group once each is cut or failed; `None` if one of them certainly no longer exists.
    async fn members(&self, deadline: Deadline, row: &SnapshotGroup) -> Result<Option<Vec<Snapshot>>> {
        let waits = row.members.iter().map(async |member| {
            let (id, operation) = (&member.snapshot, Some(Operation::Snapshot.into()));
            let decided = |row: &Snapshot| is_cut_or_failed(row).then(|| row.clone());
            let waited = self.creator.rows.wait_decided(deadline, id, operation, decided);
            waited.await
        });
        let rows: std::result::Result<Option<Vec<_>>, _> = join_all(waits).await.into_iter().collect();
        rows.map_err(wait(format!("cut the snapshots of group {}", row.id)))
    }

    /// Deletes a failed group that no caller has received; the next call creates another.
    async fn discard_group(&self, deadline: Deadline, call: &CreateCall, row: &SnapshotGroup) -> Error {
        let id = &row.id;
        let next = match self.delete_group(deadline, id, &BTreeSet::new()).await {
            Ok(()) => {
                self.groups.forget(call, id);
                "it is deleted, and the next call creates another"
            }
            Err(error) => {
                tracing::warn!(group.id = %id, %error, "cannot delete a failed snapshot group");
                "the next call deletes it"
            }
        };
        group_failed(row, next)
    }

    /// Adds missing tags to the snapshots, which identify the cluster and the group.
    async fn tag_members(&self, deadline: Deadline, new: &NewGroupSnapshot, group: &GroupSnapshot) -> Result<()> {
        let mut tags = new.tags.clone();
        tags.extend(self.shared.owner.tags());
        tags.insert(tag::GROUP.to_owned(), group.id.to_string());
        let is_untagged = |row: &&Snapshot| tags.keys().any(|key| !row.tags.contains_key(key));
        let untagged = group.snapshots.iter().filter(is_untagged);
        let untagged: Vec<SnapshotId> = untagged.map(|row| row.id.clone()).collect();
        if untagged.is_empty() {
            return Ok(());
        }
        let request = TagResources {
            targets: TagTarget::Snapshots(untagged),
            tags,
        };
        let tagged = self.shared.ecs.tag_resources(deadline, &request).await;
        tagged.map_err(cloud(format!("tag the snapshots of group {}", group.id)))
    }

    /// Reads the group. Fails if it certainly does not exist, has other members than those given, is not cut after
    /// the lag of reads, or failed.
    pub async fn get_group(
        &self,
        deadline: Deadline,
        id: &SnapshotGroupId,
        members: &BTreeSet<SnapshotId>,
    ) -> Result<GroupSnapshot> {
        let row = read(&self.groups.rows, deadline, id).await?;
        let row = row.ok_or_else(|| {
            let text = format!("snapshot group {id} does not exist in this region, or the account has no access to it");
            rejected(Failure::NoSuchGroup, text, None)
        })?;
        self.check_members(deadline, &row, members).await?;
        let reads = row.members.iter();
        let reads = reads.map(|member| read_in_state(&self.creator.rows, deadline, &member.snapshot, is_cut_or_failed));
        let mut snapshots = Vec::new();
        for snapshot in join_all(reads).await {
            snapshots.push(snapshot?.ok_or_else(|| group_failed(&row, RECREATE))?);
        }
        let failed = snapshots.iter().any(|row| row.status == SnapshotStatus::Failed);
        if !failed && (snapshots.is_empty() || !snapshots.iter().all(is_cut_or_failed)) {
            return Err(not_cut(&format!("snapshot group {id}")));
        }
        complete_group(&row, snapshots).ok_or_else(|| group_failed(&row, RECREATE))
    }
}

/// The differences between the group and the requested disks; `None` if the group satisfies the request.
fn differences(group: &SnapshotGroup, sources: &BTreeSet<DiskId>) -> Option<String> {
    let members = group.members.iter();
    let found: BTreeSet<DiskId> = members.filter_map(|row| row.source.clone()).collect();
    let extra = (found.difference(sources)).map(|id| format!("volume {id} is not requested"));
    let missing = (sources.difference(&found)).map(|id| format!("volume {id} is missing"));
    let differences: Vec<_> = extra.chain(missing).collect();
    (!differences.is_empty()).then(|| differences.join("; "))
}

fn not_groupable(new: &NewGroupSnapshot, why: &str, source: Option<ecs::Error>) -> Error {
    let name = &new.name;
    let text = format!("the volumes of {name:?} cannot be snapshotted together: {why}");
    rejected(Failure::NotGroupable, text, source)
}

fn not_groupable_reason(condition: Condition) -> Option<&'static str> {
    Some(match condition {
        Condition::NotInSameZone => "they are in several zones",
        Condition::TooManyGroupDisks => TOO_MANY,
        Condition::GroupTooLarge => "they have more than 32 TiB together; create smaller groups",
        Condition::SharedDisk => "one of them can be attached to several nodes; create its snapshot separately",
        Condition::MixedCategories | Condition::CategoryNotSnapshottable => {
            "all must be of the ESSD family (cloud_essd, cloud_auto, cloud_essd_entry), and if one is \
             regional, all must be"
        }
        Condition::NeverAttached => {
            "one of them was never attached, and the cloud creates snapshots only of disks that once were; start a pod that \
             uses the volume, then try again"
        }
        Condition::RegionUnsupported | Condition::FeatureNotEnabled => {
            "the cloud has no snapshot groups in this region, or not for this account"
        }
        _ => return None,
    })
}

/// The error for a group with a failed or missing snapshot.
fn group_failed(row: &SnapshotGroup, next: &str) -> Error {
    let member = |member: &GroupMember| match &member.source {
        Some(disk) => format!("snapshot {} of disk {disk}", member.snapshot),
        None => format!("snapshot {}", member.snapshot),
    };
    let members: Vec<_> = row.members.iter().map(member).collect();
    let (group, members) = (&row.id, members.join(", "));
    let text = format!("snapshot group {group} failed in the cloud: {members}; {next}");
    rejected(Failure::GroupFailed, text, None)
}

/// The group, if none of its snapshots has failed.
fn complete_group(row: &SnapshotGroup, snapshots: Vec<Snapshot>) -> Option<GroupSnapshot> {
    let is_ok = |row: &Snapshot| row.status != SnapshotStatus::Failed;
    if !snapshots.iter().all(is_ok) {
        return None;
    }
    let created = snapshots.iter().filter_map(|row| row.created).max()?;
    Some(GroupSnapshot {
        id: row.id.clone(),
        created,
        snapshots,
    })
}

fn step(new: &NewGroupSnapshot) -> String {
    let sources: Vec<_> = new.sources.iter().map(DiskId::as_str).collect();
    let sources = sources.join(", ");
    format!("create snapshot group {:?} of disks {sources}", new.name)
}
