//! Snapshots.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::distribution::until;
use super::size;
use super::table::Table;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    #[default]
    Progressing,
    Accomplished,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
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

pub(crate) type Snapshots = Table<SnapshotRow>;

impl Snapshots {
    pub(super) fn of_disk(&self, disk: &str) -> impl Iterator<Item = &SnapshotRow> {
        self.rows().values().filter(move |row| row.disk == disk)
    }

    pub(crate) fn of_group(&self, group: &str) -> Vec<String> {
        let rows = self.rows().values();
        let members = rows.filter(|row| row.group.as_deref() == Some(group));
        members.map(|row| row.id.clone()).collect()
    }

    /// Whether a snapshot prevents deletion and resizing of the disk: until its point in time is captured, and in
    /// legacy categories until it is complete.
    pub(crate) fn block(&self, disk: &str) -> bool {
        self.of_disk(disk)
            .any(|row| row.stage == Stage::Progressing && (row.cut.is_none() || !size::is_essd(&row.category)))
    }
}
