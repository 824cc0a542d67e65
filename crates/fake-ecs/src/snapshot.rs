//! Snapshots.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use super::distribution::until;
use super::history::{History, Retention};
use super::index::Index;
use super::size;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    Progressing,
    Accomplished,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SnapshotRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) disk: String,
    pub(crate) category: String,
    pub(crate) size: u32,
    pub(crate) encrypted: bool,
    pub(crate) stage: Stage,
    /// When the point in time was captured.
    pub(crate) cut: Option<Timestamp>,
    pub(crate) begun: Timestamp,
    pub(crate) ends: Timestamp,
    pub(crate) retention_days: Option<u32>,
    pub(crate) resource_group: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) tags: BTreeMap<String, String>,
}

impl SnapshotRow {
    pub(crate) fn status(&self) -> &'static str {
        match self.stage {
            Stage::Progressing => "progressing",
            Stage::Accomplished => "accomplished",
            Stage::Failed => "failed",
        }
    }

    /// Whether disks can be created from it: immediately in the ESSD family, otherwise when it is complete.
    pub(crate) fn available(&self) -> bool {
        match self.stage {
            Stage::Progressing => self.cut.is_some() && size::is_essd(&self.category),
            Stage::Accomplished => true,
            Stage::Failed => false,
        }
    }

    /// In percent.
    pub(crate) fn progress(&self, now: Timestamp) -> u128 {
        match self.stage {
            Stage::Accomplished => 100,
            Stage::Progressing | Stage::Failed => {
                let whole = until(self.begun, self.ends).as_millis().max(1);
                (until(self.begun, now).as_millis() * 100 / whole).min(99)
            }
        }
    }
}

/// All snapshots, with the index of their source disks and their earlier versions.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    rows: BTreeMap<String, SnapshotRow>,
    by_disk: Index,
    pub(crate) history: History<SnapshotRow>,
}

impl Snapshots {
    pub(crate) fn get(&self, id: &str) -> Option<&SnapshotRow> {
        self.rows.get(id)
    }

    pub(crate) fn rows(&self) -> &BTreeMap<String, SnapshotRow> {
        &self.rows
    }

    pub(super) fn of_disk(&self, disk: &str) -> impl Iterator<Item = &SnapshotRow> {
        let ids = self.by_disk.of(disk);
        ids.filter_map(|id| self.rows.get(id))
    }

    /// The IDs of the members of a snapshot group.
    pub(crate) fn of_group(&self, group: &str) -> Vec<String> {
        let rows = self.rows.values();
        let members = rows.filter(|row| row.group.as_deref() == Some(group));
        members.map(|row| row.id.clone()).collect()
    }

    /// The IDs that a list at `time` can contain.
    pub(crate) fn ids_as_of(&self, time: Option<Timestamp>) -> BTreeSet<String> {
        let mut ids: BTreeSet<String> = self.rows.keys().cloned().collect();
        if time.is_some() {
            ids.extend(self.history.ids().cloned());
        }
        ids
    }

    /// The snapshot as a read at `time` returns it.
    pub(crate) fn as_of(&self, id: &str, time: Option<Timestamp>) -> Option<&SnapshotRow> {
        match time.and_then(|time| self.history.at(id, time)) {
            Some(old) => old,
            None => self.get(id),
        }
    }

    /// Whether a snapshot prevents deletion and resizing of the disk: until its point in time is captured, and in
    /// legacy categories until it is complete.
    pub(crate) fn block(&self, disk: &str) -> bool {
        self.of_disk(disk)
            .any(|row| row.stage == Stage::Progressing && (row.cut.is_none() || !size::is_essd(&row.category)))
    }

    /// Changes a snapshot if it exists.
    pub(crate) fn change(&mut self, retention: Retention, id: &str, change: impl FnOnce(&mut SnapshotRow)) {
        let Some(row) = self.rows.get_mut(id) else {
            return;
        };
        let old = row.clone();
        change(row);
        self.history.record(id, Some(&old), Some(row), retention);
    }

    pub(super) fn insert(&mut self, retention: Retention, row: SnapshotRow) {
        self.history.record(&row.id, None, Some(&row), retention);
        self.by_disk.add(&row.disk, &row.id);
        self.rows.insert(row.id.clone(), row);
    }

    pub(super) fn remove(&mut self, retention: Retention, id: &str) -> Option<SnapshotRow> {
        let old = self.rows.remove(id)?;
        self.by_disk.remove(&old.disk, id);
        self.history.record(id, Some(&old), None, retention);
        Some(old)
    }
}
