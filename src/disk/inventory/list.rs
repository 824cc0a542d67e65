//! Listing what this cluster owns. An empty response proves nothing: where this process knows of a resource of ours, one
//! counts only if the same action has just shown that it returns rows at all.

use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::str::FromStr;

use jiff::Timestamp;

use super::Inventory;
use super::tag_filter::Outgrown;
use crate::base::Deadline;
use crate::cloud::{DescribeDisks, DescribeSnapshots};
use crate::disk::Result;
use crate::disk::error::{Error, cloud};
use crate::disk::journal::{Known, RecentResources};
use crate::disk::read::read;
use crate::model::{Disk, DiskId, InstanceId, Snapshot, SnapshotId, Tags, tag};

/// The place of an item in a listing: by creation time, then id. It stays valid when that item is deleted, and what is
/// created later sorts behind it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    created: Timestamp,
    id: String,
}

/// A text that is not a cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("starting_token {0:?} was not given out by this driver; list again from the start")]
pub struct InvalidCursor(pub String);

impl Cursor {
    /// The place of an item. One that has no time yet is the newest of all.
    pub fn new(created: Option<Timestamp>, id: &impl ToString) -> Self {
        Self {
            created: created.unwrap_or(Timestamp::MAX),
            id: id.to_string(),
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }
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

/// What a listing has read so far.
struct Read<T> {
    items: Vec<(Cursor, T)>,
    /// How many rows of this cluster have come.
    ours: usize,
    /// Whether any row has come, of whomever.
    any: bool,
}

impl<T> Default for Read<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            ours: 0,
            any: false,
        }
    }
}

impl<T> Read<T> {
    /// The items in the order of their places, each once.
    fn into_items(mut self) -> Vec<T> {
        self.items.sort_by(|a, b| a.0.cmp(&b.0));
        // A listing that changes under its pages may show an item twice.
        self.items.dedup_by(|a, b| a.0 == b.0);
        self.items.into_iter().map(|(_, item)| item).collect()
    }

    /// As [`Self::into_items`], with what was made a moment ago and is not among the rows yet.
    fn complete<K: Ord, V>(
        mut self,
        known: Known<K, V>,
        item: impl Fn(&V) -> Option<(Cursor, T)>,
    ) -> Vec<T> {
        let shown: HashSet<&str> = self.items.iter().map(|(place, _)| &*place.id).collect();
        let created = known.into_created().filter_map(|row| item(&row));
        let created = created.filter(|(place, _)| !shown.contains(&*place.id));
        let created: Vec<_> = created.collect();
        self.items.extend(created);
        self.into_items()
    }
}

impl Inventory {
    /// What `keep` makes of each of this cluster's disks, the oldest first. Rows are not held together, so that a
    /// listing takes little memory.
    ///
    /// # Errors
    /// When the cloud cannot be asked, and [`Error::EmptyResponse`].
    pub async fn list<T: Send>(
        &self,
        deadline: Deadline,
        keep: impl Fn(&Disk) -> T + Send + Sync,
    ) -> Result<Vec<T>> {
        let known = self.journal.disks.known();
        let (recent, wide) = (&self.journal.disks, &self.wide.disks);
        let read = |tags| self.read_disks(deadline, tags, &known, &keep);
        let read = self.read_owned("disks", recent, &known, wide, read).await?;
        let item = |row: &Disk| Some((Cursor::new(row.created, &row.id), keep(row)));
        Ok(read.complete(known, item))
    }

    /// What `read` returns for a filter by this cluster's tag, or without one where that hides rows.
    async fn read_owned<K, V: Clone, T, F>(
        &self,
        what: &'static str,
        recent: &RecentResources<K, V>,
        known: &Known<K, V>,
        wide: &Outgrown,
        read: impl Fn(Tags) -> F,
    ) -> Result<Read<T>>
    where
        K: Ord + Clone + FromStr,
        F: Future<Output = Result<Read<T>>>,
    {
        let filter = wide.filter(self.owner.tags());
        let mut rows = read(filter.clone()).await?;
        let hides = wide.hides(&filter, rows.ours);
        if hides || !filter.is_empty() && !rows.any && recent.any() {
            rows = read(Tags::new()).await?;
        }
        if !rows.any && recent.any() {
            return Err(Error::EmptyResponse { what });
        }
        let places = rows.items.iter().map(|(place, _)| place);
        recent.listed(known, places.filter_map(|place| place.id.parse().ok()));
        Ok(rows)
    }

    async fn read_disks<T: Send>(
        &self,
        deadline: Deadline,
        tags: Tags,
        known: &Known<DiskId, Disk>,
        keep: impl Fn(&Disk) -> T + Send + Sync,
    ) -> Result<Read<T>> {
        let mut query = DescribeDisks {
            tags,
            page_size: Some(500),
            ..DescribeDisks::default()
        };
        let mut read = Read::default();
        loop {
            let page = self.ecs.describe_disks(deadline, &query).await;
            let page = page.map_err(cloud("list the disks"))?;
            read.any |= !page.rows.is_empty() || !page.unreadable.is_empty();
            for mut row in page.rows {
                if !self.owner.has(&row.tags) {
                    continue;
                }
                read.ours += 1;
                if known.is_deleted(&row.id) {
                    continue;
                }
                // A read of before it left a node still shows it there.
                let holders = std::mem::take(&mut row.attachments);
                let stays = |node: &InstanceId| !self.journal.detached.is_before(&row, node);
                row.attachments = holders.into_iter().filter(stays).collect();
                read.items
                    .push((Cursor::new(row.created, &row.id), keep(&row)));
            }
            query.next = page.next;
            if query.next.is_none() {
                return Ok(read);
            }
        }
    }

    /// What `keep` makes of each of this cluster's snapshots, the oldest first. Of one disk where `source` is given,
    /// the one of this id where `id` is, whoever owns that. None that is not cut yet (CSI `ListSnapshots`), and none
    /// that is there only for a clone.
    ///
    /// # Errors
    /// When the cloud cannot be asked, and [`Error::EmptyResponse`].
    pub async fn list_snapshots<T: Send>(
        &self,
        deadline: Deadline,
        id: Option<&SnapshotId>,
        source: Option<&DiskId>,
        keep: impl Fn(&Snapshot) -> T + Send + Sync,
    ) -> Result<Vec<T>> {
        let known = self.journal.snapshots.known();
        let fits = |row: &Snapshot| {
            row.created.is_some()
                && id.is_none_or(|id| row.id == *id)
                && source.is_none_or(|disk| row.source_disk.as_ref() == Some(disk))
                && !row.tags.contains_key(tag::CLONE_FOR)
        };
        let made = |row: &Snapshot| {
            let place = Cursor::new(row.created, &row.id);
            fits(row).then(|| (place, keep(row)))
        };
        let item = |row: &Snapshot| made(row).filter(|_| !known.is_deleted(&row.id));
        let read = if let Some(id) = id {
            // Shared with all who look at a snapshot now: the snapshotter asks for one at a time.
            let row = read(&self.snapshots, deadline, id).await?;
            Read {
                items: row.and_then(|row| item(&row)).into_iter().collect(),
                ..Read::default()
            }
        } else if source.is_some() {
            // One disk has few enough, and they need no tags to be told apart.
            let none = Tags::new();
            self.read_snapshots(deadline, source, none, &item).await?
        } else {
            let (recent, wide) = (&self.journal.snapshots, &self.wide.snapshots);
            let read = |tags| self.read_snapshots(deadline, None, tags, &item);
            self.read_owned("snapshots", recent, &known, wide, read)
                .await?
        };
        Ok(read.complete(known, made))
    }

    async fn read_snapshots<T: Send>(
        &self,
        deadline: Deadline,
        disk: Option<&DiskId>,
        tags: Tags,
        item: impl Fn(&Snapshot) -> Option<(Cursor, T)> + Send + Sync,
    ) -> Result<Read<T>> {
        let mut query = DescribeSnapshots {
            disk: disk.cloned(),
            tags,
            ..DescribeSnapshots::default()
        };
        let mut read = Read::default();
        loop {
            let page = self.ecs.describe_snapshots(deadline, &query).await;
            let page = page.map_err(cloud("list the snapshots"))?;
            read.any |= !page.rows.is_empty() || !page.unreadable.is_empty();
            for row in page.rows {
                if self.owner.has(&row.tags) {
                    read.ours += 1;
                    read.items.extend(item(&row));
                }
            }
            query.next = page.next;
            if query.next.is_none() {
                return Ok(read);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_ordered_by_time_and_id_and_none_is_twice() {
        let place = |time, id: &str| Cursor::new(Timestamp::from_second(time).ok(), &id);
        let read = Read {
            items: [(3, "c"), (1, "b"), (1, "a"), (3, "c")]
                .map(|(time, id)| (place(time, id), id))
                .to_vec(),
            ..Read::default()
        };
        assert_eq!(read.into_items(), ["a", "b", "c"]);
        assert!(Cursor::new(None, &"0") > place(4_000_000_000, "z"));
        let there: Cursor = place(1, "a/b").to_string().parse().unwrap();
        assert_eq!(there, place(1, "a/b"));
    }

    #[test]
    fn a_foreign_token_is_refused() {
        let error = "invalid-token".parse::<Cursor>().unwrap_err();
        assert!(error.to_string().contains("\"invalid-token\""), "{error}");
    }
}
