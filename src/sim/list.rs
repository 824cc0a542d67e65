//! The lists: disks and snapshots from the lagging replica, instances and their types.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::disk::{DiskRow, Phase};
use super::instance::InstanceRow;
use super::machine::{KNOWN, MachineType};
use super::params::Params;
use super::reply::{Answer, Refusal, Reply};
use super::snapshot::SnapshotRow;
use super::spread::before;
use super::tag::carries;
use super::world::World;

impl World {
    /// The time as of which a read is served.
    pub(super) fn replica_time(&mut self) -> Option<Timestamp> {
        let stale = &self.config.stale;
        if stale.lag.is_zero() {
            return None;
        }
        if let Some(percent) = stale.percent
            && !self.rng.percent(percent)
        {
            return None;
        }
        let lag = if stale.jumping {
            stale.lag.draw(&mut self.rng)
        } else {
            stale.lag.max()
        };
        Some(before(self.now, lag))
    }

    fn disk_as_of(&self, id: &str, time: Option<Timestamp>) -> Option<Cow<'_, DiskRow>> {
        let current = self.disk(id);
        let old = time.and_then(|time| self.old_disks.at(id, time));
        let Some(old) = old else {
            return current.map(Cow::Borrowed);
        };
        let old = old.filter(|row| row.phase != Phase::Deleting)?;
        match current {
            // The attachments are newer than the status: they need not agree.
            Some(current) if self.config.stale.torn => Some(Cow::Owned(DiskRow {
                shown_status: Some(old.status()),
                shown_holder: Some(old.holder().cloned()),
                ..current.clone()
            })),
            _ => Some(Cow::Borrowed(old)),
        }
    }

    /// Whether the index of tags finds the disk, which must be there and carry them all. The index
    /// may be older than the row.
    fn finds_disk(&self, row: &DiskRow, tags: &BTreeMap<String, String>) -> bool {
        let lag = self.config.stale.tags;
        if tags.is_empty() || lag.is_zero() {
            return carries(&row.tags, tags);
        }
        let old = self.old_disks.at(&row.id, before(self.now, lag));
        old.unwrap_or(Some(row))
            .is_some_and(|row| carries(&row.tags, tags))
    }

    fn finds_snapshot(&self, row: &SnapshotRow, tags: &BTreeMap<String, String>) -> bool {
        let lag = self.config.stale.tags;
        if tags.is_empty() || lag.is_zero() {
            return carries(&row.tags, tags);
        }
        let old = self.old_snapshots.at(&row.id, before(self.now, lag));
        old.unwrap_or(Some(row))
            .is_some_and(|row| carries(&row.tags, tags))
    }

    pub(super) fn check_region(&self, params: &Params) -> Result<(), Refusal> {
        match params.get("RegionId") {
            None => Err(Refusal::new(400, "MissingParamter.RegionId")),
            Some(region) if region == self.region => Ok(()),
            Some(_) => Err(Refusal::new(400, "InvalidRegion.NotFound")),
        }
    }

    pub(crate) fn describe_disks(&mut self, params: &Params) -> Reply {
        self.check_region(params)?;
        let malformed = Refusal::new(403, "InvalidDiskIds.Malformed");
        let ids = params.ids("DiskIds", malformed)?;
        let tags = params.tags()?;
        if let Some(zone) = params.get("ZoneId")
            && !self.zones.iter().any(|known| known == zone)
        {
            return Err(Refusal::new(400, "InvalidZoneId.NotFound"));
        }
        let time = self.replica_time();
        let reach = self.reach(params, 10..=500)?;
        // Without a lag there is nothing to merge, and the rows are taken in turn.
        let ids: Box<dyn Iterator<Item = &String>> = match (&ids, time) {
            (Some(ids), _) => Box::new(ids.iter()),
            (None, None) => Box::new(reach.beyond(&self.disks)),
            (None, Some(_)) => {
                let all: BTreeSet<&String> =
                    self.disks.keys().chain(self.old_disks.ids()).collect();
                Box::new(all.into_iter())
            }
        };
        let ids = ids.filter(|id| reach.is_beyond(id));
        let is = |name: &str, value: &str| params.get(name).is_none_or(|want| want == value);
        let rows = ids.filter_map(|id| {
            let row = self.disk_as_of(id, time)?;
            let instance = params.get("InstanceId");
            let matches = self.finds_disk(&row, &tags)
                && instance.is_none_or(|instance| row.shown().any(|a| a.instance == instance))
                && is("ZoneId", &row.zone)
                && is("Category", &row.category)
                && is("DiskName", &row.name)
                && is("SnapshotId", row.snapshot.as_deref().unwrap_or_default())
                && matches!(params.get("DiskType"), None | Some("all" | "data"))
                && params
                    .get("Status")
                    .is_none_or(|want| want == "All" || want == row.status());
            matches.then(|| {
                let mut row = row.into_owned();
                let ailment = self.config.ailing.get(id);
                row.shown_lock = ailment.and_then(|ailment| ailment.lock.clone());
                row.unreadable = ailment.is_some_and(|ailment| ailment.unreadable);
                (id.clone(), row)
            })
        });
        let rows = rows.take(reach.most).collect();
        self.page(params, 10..=500, rows).map(Answer::Disks)
    }

    pub(crate) fn describe_snapshots(&mut self, params: &Params) -> Reply {
        self.check_region(params)?;
        let malformed = Refusal::new(403, "InvalidSnapshotIds.Malformed");
        let ids = params.ids("SnapshotIds", malformed)?;
        let tags = params.tags()?;
        let status = params.get("Status").unwrap_or("all");
        if !matches!(status, "all" | "progressing" | "accomplished" | "failed") {
            return Err(Refusal::new(404, "InvalidStatus.NotFound"));
        }
        let time = self.replica_time();
        let ids = match ids {
            Some(ids) => ids,
            None => {
                let mut all: BTreeSet<String> = self.snapshots.keys().cloned().collect();
                if time.is_some() {
                    all.extend(self.old_snapshots.ids().cloned());
                }
                all
            }
        };
        let rows = ids.into_iter().filter_map(|id| {
            let row = self.snapshot_as_of(&id, time)?;
            let disk = params.get("DiskId");
            let name = params.get("SnapshotName");
            let matches = self.finds_snapshot(row, &tags)
                && disk.is_none_or(|disk| row.disk == disk)
                && name.is_none_or(|name| row.name == name)
                && (status == "all" || status == row.status());
            matches.then(|| (id, row.clone()))
        });
        let rows = rows.collect();
        self.page(params, 10..=100, rows).map(Answer::Snapshots)
    }

    pub(super) fn snapshot_as_of(&self, id: &str, time: Option<Timestamp>) -> Option<&SnapshotRow> {
        match time.and_then(|time| self.old_snapshots.at(id, time)) {
            Some(old) => old,
            None => self.snapshot(id),
        }
    }

    pub(crate) fn describe_instances(&mut self, params: &Params) -> Reply {
        params.required("RegionId")?;
        let malformed = Refusal::new(403, "InvalidInstanceIds.Malformed");
        let ids = params.ids("InstanceIds", malformed)?;
        let tags = params.tags()?;
        let is = |name: &str, value: &str| params.get(name).is_none_or(|want| want == value);
        let rows = self.instances.values().filter(|row| {
            ids.as_ref().is_none_or(|ids| ids.contains(&row.id))
                && carries(&row.tags, &tags)
                && is("ZoneId", &row.zone)
                && is("Status", row.power.as_str())
        });
        let shown = |row: &InstanceRow| (row.id.clone(), self.as_tagged(row));
        let rows = rows.map(shown).collect();
        self.page(params, 10..=100, rows).map(Answer::Instances)
    }

    pub(crate) fn describe_instance_types(&mut self, params: &Params) -> Reply {
        let names = params.list("InstanceTypes");
        if names.len() > 10 {
            return Err(Refusal::invalid("InstanceTypes"));
        }
        let names = if names.is_empty() {
            KNOWN.to_vec()
        } else {
            names
        };
        let types = names.into_iter().map(|name| {
            let mut machine = MachineType::named(name);
            if let Some(quantity) = self.config.rules.disk_quantity {
                machine.disk_quantity = quantity;
            }
            machine
        });
        Ok(Answer::Types(types.collect()))
    }

    pub(crate) fn describe_regions(&self) -> Reply {
        Ok(Answer::Regions(vec![self.region.clone()]))
    }
}
