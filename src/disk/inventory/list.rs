//! Lists the resources of this cluster. If one is known to exist, an empty response is accepted only if the same
//! action has just returned rows of other owners.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use ecs::{DescribeDisks, DescribeSnapshots, Page};
use jiff::Timestamp;

use super::Inventory;
use crate::base::Deadline;
use crate::disk::Result;
use crate::disk::error::{cloud, rejected};
use crate::disk::evidence::READ_LAG;
use crate::disk::journal::{RecentChanges, RecentResources};
use crate::disk::owned::{OwnedResource, PAGE};
use crate::disk::read::read;
use crate::model::{Disk, DiskId, DiskKind, Failure, Snapshot, SnapshotId, Tags, tag};

/// The position of an item in a listing: by creation time, then ID. It stays valid after the item is deleted, and later
/// items sort after it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    created: Timestamp,
    id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("starting_token {0:?} was not issued by this driver; list again from the start")]
pub struct InvalidCursor(pub String);

impl Cursor {
    /// The position of an item. An item without a creation time yet is the newest.
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

struct ListedRows<T> {
    items: Vec<(Cursor, T)>,
    /// Number of rows that belong to the list, before `item` selects.
    listed: usize,
    any: bool,
}

fn cursor<V: OwnedResource>(row: &V) -> Cursor {
    Cursor::new(row.created(), row.id())
}

fn sorted<T>(mut items: Vec<(Cursor, T)>) -> Vec<T> {
    items.sort_by(|a, b| a.0.cmp(&b.0));
    // A change between two pages can repeat an item.
    items.dedup_by(|a, b| a.0 == b.0);
    items.into_iter().map(|(_, item)| item).collect()
}

/// The items by creation time and ID, with recently created resources that the rows do not show yet.
fn with_recent<V: OwnedResource, T>(
    mut items: Vec<(Cursor, T)>,
    changes: RecentChanges<V::Id, V>,
    item: impl Fn(V) -> Option<T>,
) -> Vec<T> {
    let listed: HashSet<_> = items.iter().map(|(cursor, _)| cursor.id.clone()).collect();
    let created = changes.into_created().map(|row| (cursor(&row), row));
    let missing = created.filter(|(cursor, _)| !listed.contains(&cursor.id));
    items.extend(missing.filter_map(|(cursor, row)| Some((cursor, item(row)?))));
    sorted(items)
}

impl Inventory {
    /// Maps each disk of this cluster with `map`, oldest first. Rows are not collected, to save memory. Fails if the
    /// response is empty although a disk exists.
    pub async fn list<T: Send>(&self, deadline: Deadline, map: impl Fn(&Disk) -> T + Send + Sync) -> Result<Vec<T>> {
        let item = |row: Disk| Some(map(&self.with_recent_holders(row)));
        self.read_owned(deadline, &self.shared.journal.disks, item).await
    }

    /// Maps each disk of this cluster, and each other data disk of the account that is attached, with `map`, oldest
    /// first: the disk of a PersistentVolume need not have the cluster's tag. So all disks of the account in the region
    /// are read.
    ///
    /// For CSI `LIST_VOLUMES_PUBLISHED_NODES`: csi-attacher publishes every volume again whose attachment the list
    /// lacks.
    ///
    /// # Errors
    /// If the response contains nothing that must be visible: it may be that of another account, or of a lagging index.
    pub async fn list_published<T: Send>(
        &self,
        deadline: Deadline,
        map: impl Fn(&Disk) -> T + Send + Sync,
    ) -> Result<Vec<T>> {
        let changes = self.shared.journal.disks.recent_changes();
        let nodes = self.shared.journal.published.nodes();
        let has_canary = AtomicBool::new(false);
        let is_listed = |row: &Disk| {
            let is_owned = self.shared.owner.owns(&row.tags);
            if is_owned || row.attachments.iter().any(|node| nodes.contains(node)) {
                has_canary.store(true, Ordering::Relaxed);
            }
            let is_attached =
                || !row.attachments.is_empty() || !self.shared.journal.published.nodes_of(&row.id).is_empty();
            is_owned || row.kind == DiskKind::Data && is_attached()
        };
        let item = |row: Disk| Some(map(&self.with_recent_holders(row)));
        let page = |next| async move {
            let query = DescribeDisks {
                page_size: Some(PAGE),
                next,
                ..DescribeDisks::default()
            };
            self.shared.ecs.describe_disks(deadline, &query).await
        };
        let rows = self.read_pages(page, &changes, &is_listed, &item).await?;
        if has_canary.into_inner() {
            return Ok(with_recent(rows.items, changes, item));
        }
        let text = "the cloud lists neither a disk of this cluster nor one of its nodes: its index lags, the access key lacks the \
                    permission to describe them or belongs to another account, or the cluster has no volume yet";
        Err(rejected(Failure::EmptyResponse, text, None))
    }

    /// The row without nodes from which the disk was detached since it was read, and with those to which it was
    /// attached.
    fn with_recent_holders(&self, mut row: Disk) -> Disk {
        let journal = &self.shared.journal;
        let mut holders = std::mem::take(&mut row.attachments);
        holders.retain(|node| !journal.detached.is_stale(&row, node));
        let mut recent = journal.published.nodes_of(&row.id);
        recent.retain(|node| !holders.contains(node) && journal.attached.is_stale(&row, node, false));
        holders.extend(recent);
        row.attachments = holders;
        row
    }

    /// Maps each snapshot of this cluster with `map`, oldest first; `source` selects those of one disk, `id` one
    /// snapshot of any owner. Omits snapshots that are not cut yet (CSI `ListSnapshots`) and temporary snapshots of
    /// clones.
    pub async fn list_snapshots<T: Send>(
        &self,
        deadline: Deadline,
        id: Option<&SnapshotId>,
        source: Option<&DiskId>,
        map: impl Fn(&Snapshot) -> T + Send + Sync,
    ) -> Result<Vec<T>> {
        let item = |row: Snapshot| {
            let fits = row.created.is_some()
                && id.is_none_or(|id| row.id == *id)
                && source.is_none_or(|disk| row.source_disk.as_ref() == Some(disk))
                && !row.tags.contains_key(tag::CLONE_FOR);
            fits.then(|| map(&row))
        };
        let recent = &self.shared.journal.snapshots;
        if id.is_none() && source.is_none() {
            return self.read_owned(deadline, recent, item).await;
        }
        let changes = recent.recent_changes();
        let items = if let Some(id) = id {
            // One describe is shared with other reads: the snapshotter requests one snapshot at a time.
            let row = read(&self.shared.snapshots, deadline, id).await?;
            let row = row.filter(|row| !changes.is_deleted(&row.id));
            let found = row.and_then(|row| Some((cursor(&row), item(row)?)));
            found.into_iter().collect()
        } else {
            // One disk has few snapshots, so no filter by tags is needed.
            let page = |next| async move {
                let query = DescribeSnapshots {
                    disk: source.cloned(),
                    next,
                    ..DescribeSnapshots::default()
                };
                self.shared.ecs.describe_snapshots(deadline, &query).await
            };
            let is_owned = |row: &Snapshot| self.shared.owner.owns(&row.tags);
            self.read_pages(page, &changes, &is_owned, &item).await?.items
        };
        Ok(with_recent(items, changes, item))
    }

    /// The items of this cluster, listed by its tag, or without a filter if the cloud truncates such a list. Lists once
    /// more after the read lag if the response is empty although a resource exists.
    pub(super) async fn read_owned<V: OwnedResource, T: Send>(
        &self,
        deadline: Deadline,
        recent: &RecentResources<V::Id, V>,
        item: impl Fn(V) -> Option<T> + Send + Sync,
    ) -> Result<Vec<T>> {
        let mut may_retry = true;
        loop {
            let changes = recent.recent_changes();
            let read = |tags: Tags| {
                let page = move |next| V::list_page(&self.shared.ecs, deadline, tags.clone(), next);
                let is_owned = |row: &V| self.shared.owner.owns(row.tags());
                let (changes, item) = (&changes, &item);
                async move { self.read_pages(page, changes, &is_owned, item).await }
            };
            let is_filtered = !recent.exceeds_filter();
            let tags = is_filtered.then(|| self.shared.owner.tags());
            let mut rows = read(tags.unwrap_or_default()).await?;
            let is_truncated = recent.record_rows(rows.listed);
            if is_filtered && (is_truncated || !rows.any && recent.any_exists()) {
                rows = read(Tags::new()).await?;
            }
            if rows.any || !recent.any_exists() {
                let cursors = rows.items.iter().map(|(cursor, _)| cursor);
                recent.record_listing(&changes, cursors.filter_map(|cursor| cursor.id.parse().ok()));
                return Ok(with_recent(rows.items, changes, item));
            }
            let lag = tokio::time::sleep(READ_LAG);
            if !std::mem::take(&mut may_retry) || deadline.bound(lag).await.is_err() {
                let resource = format!("{}s", V::KIND);
                let text = format!(
                    "the cloud lists no {resource} at all, while {resource} of this cluster exist: its index lags, or \
                     the access key lacks the permission to describe them"
                );
                return Err(rejected(Failure::EmptyResponse, text, None));
            }
        }
    }

    async fn read_pages<V: OwnedResource, T: Send, F>(
        &self,
        page: impl Fn(Option<String>) -> F + Send,
        changes: &RecentChanges<V::Id, V>,
        is_listed: &(impl Fn(&V) -> bool + Sync),
        item: &(impl Fn(V) -> Option<T> + Sync),
    ) -> Result<ListedRows<T>>
    where
        F: Future<Output = ecs::Result<Page<V>>> + Send,
    {
        let mut next = None;
        let mut read = ListedRows {
            items: Vec::new(),
            listed: 0,
            any: false,
        };
        loop {
            let page = page(next).await;
            let page = page.map_err(cloud(format!("list the {}s", V::KIND)))?;
            read.any |= !page.rows.is_empty() || !page.unreadable.is_empty();
            read.listed += page.unreadable.len();
            for row in page.rows {
                if !is_listed(&row) {
                    continue;
                }
                read.listed += 1;
                if !changes.is_deleted(row.id()) {
                    let cursor = cursor(&row);
                    read.items.extend(item(row).map(|item| (cursor, item)));
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
    fn items_are_sorted_by_time_and_id_without_duplicates() {
        let position = |time, id: &str| Cursor::new(Timestamp::from_second(time).ok(), &id);
        let items = [(3, "c"), (1, "b"), (1, "a"), (3, "c")]
            .map(|(time, id)| (position(time, id), id))
            .to_vec();
        assert_eq!(sorted(items), ["a", "b", "c"]);
        assert!(Cursor::new(None, &"0") > position(4_000_000_000, "z"));
        let parsed: Cursor = position(1, "a/b").to_string().parse().unwrap();
        assert_eq!(parsed, position(1, "a/b"));
    }

    #[test]
    fn invalid_token_is_rejected() {
        let error = "invalid-token".parse::<Cursor>().unwrap_err();
        assert!(error.to_string().contains("\"invalid-token\""), "{error}");
    }
}
