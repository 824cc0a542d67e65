//! Listing what this cluster owns. An empty response proves nothing: where this process knows of a resource of ours, one
//! counts only if the same action has just shown that it returns rows at all.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use super::Inventory;
use super::tag_filter::TruncatedFilter;
use crate::base::Deadline;
use crate::cloud::{self, DescribeSnapshots, Page};
use crate::disk::error::refused;
use crate::disk::journal::{Known, RecentResources};
use crate::disk::owned::Owned;
use crate::disk::read::read;
use crate::disk::{Result, error};
use crate::model::{Disk, DiskId, Failure, InstanceId, Snapshot, SnapshotId, Tags, tag};

/// The place of an item in a listing: by creation time, then id. It stays valid when that item is deleted, and what is
/// created later sorts behind it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    created: Timestamp,
    id: String,
}

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

struct Read<T> {
    items: Vec<(Cursor, T)>,
    /// How many rows of this cluster have come.
    ours: usize,
    /// Whether any row has come, of any owner.
    any: bool,
}

fn place<V: Owned>(row: &V) -> Cursor {
    Cursor::new(row.created(), row.id())
}

/// The items in the order of their places, each once.
fn sorted<T>(mut items: Vec<(Cursor, T)>) -> Vec<T> {
    items.sort_by(|a, b| a.0.cmp(&b.0));
    // A listing that changes under its pages may show an item twice.
    items.dedup_by(|a, b| a.0 == b.0);
    items.into_iter().map(|(_, item)| item).collect()
}

/// As [`sorted`], with what was made a moment ago and is not among the rows yet.
fn complete<V: Owned, T>(
    mut items: Vec<(Cursor, T)>,
    known: Known<V::Id, V>,
    item: impl Fn(V) -> Option<T>,
) -> Vec<T> {
    let shown: HashSet<_> = items.iter().map(|(place, _)| place.id.clone()).collect();
    let created = known.into_created().map(|row| (place(&row), row));
    let missing = created.filter(|(place, _)| !shown.contains(&place.id));
    items.extend(missing.filter_map(|(place, row)| Some((place, item(row)?))));
    sorted(items)
}

impl Inventory {
    /// Maps each of this cluster's disks with `keep`, the oldest first. Rows are not collected, to save memory.
    ///
    /// # Errors
    /// If a call fails, and [`Error::EmptyResponse`].
    pub async fn list<T: Send>(
        &self,
        deadline: Deadline,
        keep: impl Fn(&Disk) -> T + Send + Sync,
    ) -> Result<Vec<T>> {
        let known = self.journal.disks.known();
        let item = |mut row: Disk| {
            // A row from before the disk was detached still shows the node.
            let holders = std::mem::take(&mut row.attachments);
            let stays = |node: &InstanceId| !self.journal.detached.is_before(&row, node);
            row.attachments = holders.into_iter().filter(stays).collect();
            Some(keep(&row))
        };
        let (recent, wide) = (&self.journal.disks, &self.wide_disks);
        let items = self.read_owned(deadline, "disks", recent, wide, &known, &item);
        Ok(complete(items.await?, known, item))
    }

    /// Maps each of this cluster's snapshots with `keep`, the oldest first; `source` selects those of one disk, `id` one
    /// snapshot of any owner. Omits snapshots that are not captured yet (CSI `ListSnapshots`) and temporary ones of clones.
    ///
    /// # Errors
    /// If a call fails, and [`Error::EmptyResponse`].
    pub async fn list_snapshots<T: Send>(
        &self,
        deadline: Deadline,
        id: Option<&SnapshotId>,
        source: Option<&DiskId>,
        keep: impl Fn(&Snapshot) -> T + Send + Sync,
    ) -> Result<Vec<T>> {
        let known = self.journal.snapshots.known();
        let item = |row: Snapshot| {
            let fits = row.created.is_some()
                && id.is_none_or(|id| row.id == *id)
                && source.is_none_or(|disk| row.source_disk.as_ref() == Some(disk))
                && !row.tags.contains_key(tag::CLONE_FOR);
            fits.then(|| keep(&row))
        };
        let items = if let Some(id) = id {
            // Shared with all current reads of snapshots: the snapshotter requests one at a time.
            let row = read(&self.snapshots, deadline, id).await?;
            let row = row.filter(|row| !known.is_deleted(&row.id));
            let found = row.and_then(|row| Some((place(&row), item(row)?)));
            found.into_iter().collect()
        } else if source.is_some() {
            // One disk has few snapshots, so no filter by tags is needed.
            let page = |next| async move {
                let query = DescribeSnapshots {
                    disk: source.cloned(),
                    next,
                    ..DescribeSnapshots::default()
                };
                self.ecs.describe_snapshots(deadline, &query).await
            };
            self.read_pages("snapshots", page, &known, &item)
                .await?
                .items
        } else {
            let (recent, wide) = (&self.journal.snapshots, &self.wide_snapshots);
            self.read_owned(deadline, "snapshots", recent, wide, &known, &item)
                .await?
        };
        Ok(complete(items, known, item))
    }

    /// The items of this cluster's rows, which are read by its tag, or without one where that hides rows.
    async fn read_owned<V: Owned, T: Send>(
        &self,
        deadline: Deadline,
        what: &'static str,
        recent: &RecentResources<V::Id, V>,
        wide: &TruncatedFilter,
        known: &Known<V::Id, V>,
        item: &(impl Fn(V) -> Option<T> + Sync),
    ) -> Result<Vec<(Cursor, T)>> {
        let read = |tags: Tags| {
            let page = move |next| V::page(&*self.ecs, deadline, tags.clone(), next);
            self.read_pages(what, page, known, item)
        };
        let filter = wide.filter(self.owner.tags());
        let mut rows = read(filter.clone()).await?;
        let hides = wide.hides(&filter, rows.ours);
        if hides || !filter.is_empty() && !rows.any && recent.any() {
            rows = read(Tags::new()).await?;
        }
        if !rows.any && recent.any() {
            let text = format!(
                "the cloud lists no {what} at all, while {what} of this cluster exist: its index lags, or the access key may \
                 not describe them"
            );
            return Err(refused(Failure::EmptyResponse, text, None));
        }
        let places = rows.items.iter().map(|(place, _)| place);
        recent.listed(known, places.filter_map(|place| place.id.parse().ok()));
        Ok(rows.items)
    }

    async fn read_pages<V: Owned, T: Send, F>(
        &self,
        what: &str,
        page: impl Fn(Option<String>) -> F + Send,
        known: &Known<V::Id, V>,
        item: &(impl Fn(V) -> Option<T> + Sync),
    ) -> Result<Read<T>>
    where
        F: Future<Output = cloud::Result<Page<V>>> + Send,
    {
        let mut next = None;
        let mut read = Read {
            items: Vec::new(),
            ours: 0,
            any: false,
        };
        loop {
            let page = page(next).await;
            let page = page.map_err(error::cloud(format!("list the {what}")))?;
            read.any |= !page.rows.is_empty() || !page.unreadable.is_empty();
            for row in page.rows {
                if !self.owner.has(row.tags()) {
                    continue;
                }
                read.ours += 1;
                if !known.is_deleted(row.id()) {
                    let place = place(&row);
                    read.items.extend(item(row).map(|item| (place, item)));
                }
            }
            next = page.next;
            if next.is_none() {
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
        let items = [(3, "c"), (1, "b"), (1, "a"), (3, "c")]
            .map(|(time, id)| (place(time, id), id))
            .to_vec();
        assert_eq!(sorted(items), ["a", "b", "c"]);
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
