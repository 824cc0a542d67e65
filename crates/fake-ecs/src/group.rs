//! Snapshot groups: snapshots of several disks at one point in time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::api_error::ApiError;
use super::snapshot::{SnapshotRow, Stage};
use super::table::Table;

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

pub(crate) type SnapshotGroups = Table<GroupRow>;
