//! Listing what this cluster owns, in pages that stay right while items come and go.

use super::Inventory;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;

use crate::base::Deadline;
use crate::cloud::{DescribeDisks, DescribeSnapshots};
use crate::disk::Result;
use crate::disk::error::{cloud, wait};
use crate::disk::stale_read::settled;
use crate::model::{Disk, DiskId, InstanceId, Snapshot, SnapshotId, Tags, tag};

/// Where a page ended: the creation time and id of its last item. It stays valid when that item is
/// deleted, and what is created later sorts behind it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    created: Timestamp,
    id: String,
}

/// A text that is no cursor of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("starting_token {0:?} was not given out by this driver; list again from the start")]
pub struct InvalidCursor(pub String);

/// One page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// Its items.
    pub items: Vec<T>,
    /// Where the next one starts; none after the last.
    pub next: Option<Cursor>,
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> std::result::Result<Self, InvalidCursor> {
        let parse = || {
            let (created, id) = text.split_once('/')?;
            Some(Self {
                created: created.parse().ok()?,
                id: id.to_owned(),
            })
        };
        parse().ok_or_else(|| InvalidCursor(text.to_owned()))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.created, self.id)
    }
}

/// Rows at which the cloud ends a list that is filtered by tags (ECS API, `DescribeDisks` and
/// `DescribeSnapshots`).
const MOST_BY_TAGS: usize = 1000;

/// Which lists have outgrown the filter by tags, so that it is not tried in vain each time.
#[derive(Debug, Default)]
pub(super) struct Wide {
    disks: Outgrown,
    snapshots: Outgrown,
}

#[derive(Debug, Default)]
struct Outgrown(AtomicBool);

impl Outgrown {
    /// What to filter by.
    fn filter(&self, own: Tags) -> Tags {
        if self.0.load(Ordering::Relaxed) {
            Tags::new()
        } else {
            own
        }
    }

    /// Whether a list by this filter must be had once more, without one.
    fn hides(&self, filter: &Tags, rows: usize) -> bool {
        let large = rows >= MOST_BY_TAGS;
        if self.0.swap(large, Ordering::Relaxed) != large {
            tracing::info!(rows, filtered = !large, "lists go another way from now on");
        }
        large && !filter.is_empty()
    }
}

impl Inventory {
    /// This cluster's disks after the cursor, at most so many; none means all.
    ///
    /// # Errors
    /// When the cloud cannot be asked.
    pub async fn list(
        &self,
        deadline: Deadline,
        after: Option<&Cursor>,
        at_most: Option<usize>,
    ) -> Result<Listed<Disk>> {
        let known = self.journal.disks.known();
        let wide = &self.wide.disks;
        let filter = wide.filter(self.owner.tags());
        let mut rows = self.disk_pages(deadline, filter.clone()).await?;
        rows.retain(|disk| self.owner.has(&disk.tags));
        if wide.hides(&filter, rows.len()) {
            rows = self.disk_pages(deadline, Tags::new()).await?;
            rows.retain(|disk| self.owner.has(&disk.tags));
        }
        known.correct(&mut rows, |disk| &disk.id, |_| true);
        for row in &mut rows {
            // A read of before it left a node still shows it there.
            let holders = std::mem::take(&mut row.attachments);
            let stays = |node: &InstanceId| !self.journal.detached.is_before(row, node);
            row.attachments = holders.into_iter().filter(stays).collect();
        }
        let key = |disk: &Disk| (disk.created, disk.id.to_string());
        Ok(cut(rows, key, after, at_most))
    }

    /// This cluster's snapshots after the cursor, at most so many; none means all. Of one disk where
    /// `source` is given, the one of this id where `id` is, whoever owns that. None that is not cut
    /// yet (CSI `ListSnapshots`), and none that is there only for a clone.
    ///
    /// # Errors
    /// When the cloud cannot be asked.
    pub async fn list_snapshots(
        &self,
        deadline: Deadline,
        id: Option<&SnapshotId>,
        source: Option<&DiskId>,
        page: (Option<&Cursor>, Option<usize>),
    ) -> Result<Listed<Snapshot>> {
        let (after, at_most) = page;
        let known = self.journal.snapshots.known();
        let mut rows = if let Some(id) = id {
            // Shared with all who look at a snapshot now: the snapshotter asks for one at a time.
            let row = settled(&self.snapshots, id, deadline).await;
            let row = row.map_err(wait(format!("look at snapshot {id}")))?;
            row.map(|row| Snapshot::clone(&row)).into_iter().collect()
        } else {
            // One disk has few enough, and they need no tags to be told apart.
            let wide = &self.wide.snapshots;
            let filter = match source {
                Some(_) => Tags::new(),
                None => wide.filter(self.owner.tags()),
            };
            let mut rows = self
                .snapshot_pages(deadline, source, filter.clone())
                .await?;
            rows.retain(|row| self.owner.has(&row.tags));
            if source.is_none() && wide.hides(&filter, rows.len()) {
                rows = self.snapshot_pages(deadline, None, Tags::new()).await?;
                rows.retain(|row| self.owner.has(&row.tags));
            }
            rows
        };
        let fits = |row: &Snapshot| {
            row.created.is_some()
                && id.is_none_or(|id| row.id == *id)
                && source.is_none_or(|disk| row.source_disk.as_ref() == Some(disk))
                && !row.tags.contains_key(tag::CLONE_FOR)
        };
        rows.retain(fits);
        known.correct(&mut rows, |row| &row.id, fits);
        let key = |row: &Snapshot| (row.created, row.id.to_string());
        Ok(cut(rows, key, after, at_most))
    }

    async fn disk_pages(&self, deadline: Deadline, tags: Tags) -> Result<Vec<Disk>> {
        let mut query = DescribeDisks {
            tags,
            page_size: Some(500),
            ..DescribeDisks::default()
        };
        let mut rows = Vec::new();
        loop {
            let page = self.ecs.describe_disks(deadline, &query).await;
            let page = page.map_err(cloud("list the disks"))?;
            rows.extend(page.rows);
            query.next = page.next;
            if query.next.is_none() {
                return Ok(rows);
            }
        }
    }

    async fn snapshot_pages(
        &self,
        deadline: Deadline,
        disk: Option<&DiskId>,
        tags: Tags,
    ) -> Result<Vec<Snapshot>> {
        let mut query = DescribeSnapshots {
            disk: disk.cloned(),
            tags,
            ..DescribeSnapshots::default()
        };
        let mut rows = Vec::new();
        loop {
            let page = self.ecs.describe_snapshots(deadline, &query).await;
            let page = page.map_err(cloud("list the snapshots"))?;
            rows.extend(page.rows);
            query.next = page.next;
            if query.next.is_none() {
                return Ok(rows);
            }
        }
    }
}

pub(super) fn cut<T>(
    rows: Vec<T>,
    key: impl Fn(&T) -> (Option<Timestamp>, String),
    after: Option<&Cursor>,
    at_most: Option<usize>,
) -> Listed<T> {
    let cursor = |row: &T| {
        let (created, id) = key(row);
        // What has no time yet is the newest of all.
        Cursor {
            created: created.unwrap_or(Timestamp::MAX),
            id,
        }
    };
    let mut rows: Vec<(Cursor, T)> = rows.into_iter().map(|row| (cursor(&row), row)).collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    // A listing that changes under its pages may tell of an item twice.
    rows.dedup_by(|a, b| a.0 == b.0);
    rows.retain(|(cursor, _)| after.is_none_or(|after| cursor > after));
    let more = at_most.is_some_and(|most| rows.len() > most);
    rows.truncate(at_most.unwrap_or(usize::MAX));
    let next = rows
        .last()
        .filter(|_| more)
        .map(|(cursor, _)| cursor.clone());
    Listed {
        items: rows.into_iter().map(|(_, row)| row).collect(),
        next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ids: &[(i64, &str)], after: Option<&Cursor>) -> (Vec<String>, Option<Cursor>) {
        let rows: Vec<(i64, String)> = ids.iter().map(|(t, id)| (*t, (*id).to_owned())).collect();
        let key = |row: &(i64, String)| (Timestamp::from_second(row.0).ok(), row.1.clone());
        let listed = cut(rows, key, after, Some(2));
        (
            listed.items.into_iter().map(|(_, id)| id).collect(),
            listed.next,
        )
    }

    #[test]
    fn a_cursor_survives_the_deletion_of_its_item_and_finds_later_ones() {
        let (first, next) = page(&[(3, "c"), (1, "a"), (2, "b")], None);
        assert_eq!(first, ["a", "b"]);
        let next: Cursor = next.unwrap().to_string().parse().unwrap();
        let (second, end) = page(&[(1, "a"), (3, "c"), (4, "0")], Some(&next));
        assert_eq!((second, end), (vec!["c".to_owned(), "0".to_owned()], None));
    }

    #[test]
    fn a_foreign_token_is_refused() {
        let error = "invalid-token".parse::<Cursor>().unwrap_err();
        assert!(error.to_string().contains("\"invalid-token\""), "{error}");
    }
}
