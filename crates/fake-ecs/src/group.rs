//! Snapshot groups: snapshots of several disks at one point in time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use super::api_error::ApiError;
use super::history::{History, Retention};
use super::snapshot::{SnapshotRow, Stage};

/// A snapshot group; the snapshots refer to it.
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

/// A group as a list returns it, with the snapshots that the replica contains.
#[derive(Debug, Clone)]
pub(crate) struct GroupView {
    pub(crate) row: GroupRow,
    pub(crate) members: Vec<SnapshotRow>,
}

/// A snapshot that remains after the deletion of its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemainingMember {
    pub(crate) snapshot: String,
    pub(crate) error: ApiError,
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

/// All snapshot groups, with their earlier versions.
#[derive(Debug, Default)]
pub(crate) struct SnapshotGroups {
    rows: BTreeMap<String, GroupRow>,
    history: History<GroupRow>,
}

impl SnapshotGroups {
    pub(crate) fn rows(&self) -> &BTreeMap<String, GroupRow> {
        &self.rows
    }

    /// The IDs that a list at `time` can contain.
    pub(super) fn ids_as_of(&self, time: Option<Timestamp>) -> BTreeSet<String> {
        let mut ids: BTreeSet<String> = self.rows.keys().cloned().collect();
        if time.is_some() {
            ids.extend(self.history.ids().cloned());
        }
        ids
    }

    /// The group as a read at `time` returns it.
    pub(super) fn as_of(&self, id: &str, time: Option<Timestamp>) -> Option<&GroupRow> {
        match time.and_then(|time| self.history.at(id, time)) {
            Some(old) => old,
            None => self.rows.get(id),
        }
    }

    pub(super) fn insert(&mut self, retention: Retention, row: GroupRow) {
        self.history.record(&row.id, None, Some(&row), retention);
        self.rows.insert(row.id.clone(), row);
    }

    pub(super) fn remove(&mut self, retention: Retention, id: &str) {
        if let Some(old) = self.rows.remove(id) {
            self.history.record(id, Some(&old), None, retention);
        }
    }
}
