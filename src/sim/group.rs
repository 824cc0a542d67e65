//! Snapshot groups: snapshots of several disks at one instant.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use super::action::Action;
use super::name;
use super::params::Params;
use super::reply::{Answer, Refusal, Reply};
use super::size;
use super::snapshot::{SnapshotRow, Stage};
use super::spread::{after, before};
use super::tag::{self, carries};
use super::world::World;

/// Disks of one group.
const MOST_DISKS: usize = 16;
/// GiB of all of them.
const MOST_GIB: u64 = 32 * 1024;
/// Ids that one description takes.
const MOST_IDS: usize = 10;

/// A group as the world knows it; its snapshots know that they are its members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct GroupRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) instance: Option<String>,
    pub(crate) resource_group: Option<String>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) created: Timestamp,
}

/// A group as a list shows it: with those of its snapshots that the replica knows.
#[derive(Debug, Clone)]
pub(crate) struct GroupView {
    pub(crate) row: GroupRow,
    pub(crate) members: Vec<SnapshotRow>,
}

/// A snapshot that the deletion of its group left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) snapshot: String,
    pub(crate) refusal: Refusal,
}

impl GroupView {
    pub(crate) fn status(&self) -> &'static str {
        let any = |stage| self.members.iter().any(|row| row.stage == stage);
        if any(Stage::Failed) {
            "failed"
        } else if any(Stage::Progressing) || self.members.is_empty() {
            "progressing"
        } else {
            "accomplished"
        }
    }
}

impl World {
    pub(crate) fn create_snapshot_group(&mut self, params: &Params, fails_later: bool) -> Reply {
        if params.required("RegionId")? != self.region {
            return Err(Refusal::new(404, "InvalidRegionId.NotFound"));
        }
        self.once(Action::CreateSnapshotGroup, params, |world| {
            world.create_group_once(params, fails_later)
        })
    }

    fn create_group_once(&mut self, params: &Params, fails_later: bool) -> Reply {
        let group_name = params.get("Name").unwrap_or_default();
        name::check(group_name, "InvalidSnapshotName.Malformed")?;
        let tags = params.tags()?;
        tag::check_count(&tags)?;
        let disks = self.disks_of_group(params)?;
        self.check_group(&disks)?;
        let group = format!("ssg-{}", self.rng.body());
        let row = GroupRow {
            id: group.clone(),
            name: group_name.to_owned(),
            description: params.get("Description").unwrap_or_default().to_owned(),
            instance: params.get("InstanceId").map(str::to_owned),
            resource_group: params.get("ResourceGroupId").map(str::to_owned),
            tags,
            created: self.now,
        };
        self.note_group(&group, None, Some(&row));
        self.groups.insert(group.clone(), row);
        // One instant for all of them.
        let (cut, whole) = self.snapshot_delays();
        for disk in disks {
            self.put_member(&group, &disk, cut, whole, fails_later);
        }
        Ok(Answer::Group(group))
    }

    fn put_member(
        &mut self,
        group: &str,
        disk: &str,
        cut: std::time::Duration,
        whole: std::time::Duration,
        fails_later: bool,
    ) {
        let Some(source) = self.disk(disk).cloned() else {
            return;
        };
        let made = format!("Created_from_{group}");
        let row = SnapshotRow {
            id: format!("s-{}", self.rng.body()),
            name: format!("{made}_{disk}"),
            description: made,
            disk: disk.to_owned(),
            category: source.category,
            size: source.size,
            encrypted: source.encrypted,
            stage: Stage::Progressing,
            cut: None,
            begun: self.now,
            ends: after(self.now, whole),
            retention_days: None,
            resource_group: None,
            group: Some(group.to_owned()),
            tags: BTreeMap::new(),
        };
        self.put_snapshot(cut, fails_later, row);
    }

    fn disks_of_group(&self, params: &Params) -> Result<BTreeSet<String>, Refusal> {
        let own =
            |ids: Vec<&str>| -> BTreeSet<String> { ids.into_iter().map(str::to_owned).collect() };
        let named = own(params.list("DiskId"));
        let excluded = own(params.list("ExcludeDiskId"));
        if !named.is_empty() && !excluded.is_empty() {
            return Err(Refusal::new(
                400,
                "InvalidParam.ExcludeDiskIdsAndDiskIds.Conflict",
            ));
        }
        if !named.is_empty() {
            return Ok(named);
        }
        let Some(instance) = params.get("InstanceId") else {
            return Err(Refusal::new(400, "MissingParamter.InstanceId"));
        };
        if self.instance(instance).is_none() {
            return Err(Refusal::new(404, "InvalidInstanceId.NotFound"));
        }
        let held: BTreeSet<String> = self.held_by.of(instance).cloned().collect();
        let disks: BTreeSet<String> = held.difference(&excluded).cloned().collect();
        if disks.is_empty() {
            return Err(Refusal::new(403, "InvalidInstance.NoDisk"));
        }
        Ok(disks)
    }

    fn check_group(&mut self, disks: &BTreeSet<String>) -> Result<(), Refusal> {
        if disks.len() > MOST_DISKS {
            return Err(Refusal::new(403, "NumberExceed.TooManyDisks"));
        }
        let (mut zones, mut gib) = (BTreeSet::new(), 0);
        for disk in disks {
            let missing = || Refusal::new(404, "InvalidDiskId.NotFound");
            let row = self.disk(disk).ok_or_else(missing)?;
            if row.multi_attach {
                return Err(Refusal::new(403, "InvalidOperation.MultiAttachDisk"));
            }
            if !size::is_essd(&row.category) {
                return Err(Refusal::new(403, "InvalidDisk.DiskCategoryInconsistent"));
            }
            zones.insert(row.zone.clone());
            gib += u64::from(row.size);
        }
        if zones.len() > 1 {
            return Err(Refusal::new(400, "InvalidDiskIds.NotInSameZone"));
        }
        if gib > MOST_GIB {
            return Err(Refusal::new(403, "CapacityExceed.TooManyDisks"));
        }
        disks
            .iter()
            .try_for_each(|disk| self.check_snapshot_source(disk))
    }

    pub(crate) fn delete_snapshot_group(&mut self, params: &Params) -> Reply {
        params.required("RegionId")?;
        let id = params.required("SnapshotGroupId")?;
        if !self.groups.contains_key(id) {
            return if self.config.rules.missing_is_error {
                Err(Refusal::new(404, "InvalidSnapshotGroupId.NotFound"))
            } else {
                Ok(Answer::GroupDeleted(Vec::new()))
            };
        }
        let mut kept = Vec::new();
        for snapshot in self.members_of(id) {
            match self.held(&snapshot) {
                Some(refusal) => kept.push(Kept { snapshot, refusal }),
                None => self.drop_snapshot(&snapshot),
            }
        }
        Ok(Answer::GroupDeleted(kept))
    }

    fn members_of(&self, group: &str) -> Vec<String> {
        let rows = self.snapshots.values();
        let members = rows.filter(|row| row.group.as_deref() == Some(group));
        members.map(|row| row.id.clone()).collect()
    }

    /// One of its snapshots is gone; with the last one goes the group.
    pub(super) fn shrink_group(&mut self, group: Option<&str>) {
        let Some(group) = group else { return };
        if self.members_of(group).is_empty()
            && let Some(old) = self.groups.remove(group)
        {
            self.note_group(group, Some(&old), None);
        }
    }

    pub(crate) fn describe_snapshot_groups(&mut self, params: &Params) -> Reply {
        self.check_region(params)?;
        let named = params.list("SnapshotGroupId");
        if named.len() > MOST_IDS {
            return Err(Refusal::new(400, "InvalidParameter.SnapshotGroupId"));
        }
        let tags = params.tags()?;
        let wanted = params.list("Status");
        let time = self.replica_time();
        let mut ids: BTreeSet<String> = named.into_iter().map(str::to_owned).collect();
        if ids.is_empty() {
            ids.extend(self.groups.keys().cloned());
            if time.is_some() {
                ids.extend(self.old_groups.ids().cloned());
            }
        }
        let is = |name: &str, value: &str| params.get(name).is_none_or(|want| want == value);
        let rows = ids.into_iter().filter_map(|id| {
            let row = match time.and_then(|time| self.old_groups.at(&id, time)) {
                Some(old) => old,
                None => self.groups.get(&id),
            }?;
            let members = self.known_members(&id, time);
            let view = GroupView {
                row: row.clone(),
                members,
            };
            let matches = carries(&row.tags, &tags)
                && is("Name", &row.name)
                && is("InstanceId", row.instance.as_deref().unwrap_or_default())
                && (wanted.is_empty() || wanted.contains(&view.status()));
            matches.then_some((id, view))
        });
        let rows = rows.collect();
        self.page(params, 1..=100, rows).map(Answer::Groups)
    }

    fn known_members(&self, group: &str, time: Option<Timestamp>) -> Vec<SnapshotRow> {
        let mut ids: BTreeSet<&String> = self.snapshots.keys().collect();
        if time.is_some() {
            ids.extend(self.old_snapshots.ids());
        }
        let rows = ids
            .into_iter()
            .filter_map(|id| self.snapshot_as_of(id, time));
        rows.filter(|row| row.group.as_deref() == Some(group))
            .cloned()
            .collect()
    }

    fn note_group(&mut self, id: &str, old: Option<&GroupRow>, new: Option<&GroupRow>) {
        let lag = self.config.stale.lag;
        if lag.is_zero() {
            self.old_groups.clear();
        } else {
            let horizon = before(self.now, lag.max());
            self.old_groups.note(id, old, new, self.now, horizon);
        }
    }
}
