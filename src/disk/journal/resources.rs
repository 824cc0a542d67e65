//! Resources that this process created or deleted recently. Stale reads show neither; a listing must not contradict
//! earlier responses, and an empty listing proves nothing while a resource is known to exist.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;
use std::sync::Mutex;

use crate::base::{Deadline, lock};
use crate::disk::owned::MAX_FILTERED_ROWS;
use crate::disk::stale_read::READ_LAG;

/// Maximum number of events. Dropping one is as safe as a restart.
const CAPACITY: usize = 1000;

#[derive(Debug)]
pub(in crate::disk) struct RecentResources<K, V>(Mutex<State<K, V>>);

#[derive(Debug)]
struct State<K, V> {
    /// Creations with the row, and deletions, oldest first; each is kept for the lag of reads.
    events: VecDeque<(Deadline, K, Option<V>)>,
    /// A sample of the resources that were created or listed and not deleted.
    existing: BTreeSet<K>,
    /// Whether the last listing had more rows than the cloud lists with a filter by tags.
    exceeds_filter: bool,
    generation: u64,
}

/// Creations that reads starting now may not show yet, and deletions that they may not reflect.
#[derive(Debug)]
pub(in crate::disk) struct RecentChanges<K, V> {
    created: BTreeMap<K, V>,
    deleted: BTreeSet<K>,
    generation: u64,
}

impl<K, V> Default for RecentResources<K, V> {
    fn default() -> Self {
        Self(Mutex::new(State {
            events: VecDeque::new(),
            existing: BTreeSet::new(),
            exceeds_filter: false,
            generation: 0,
        }))
    }
}

impl<K: Ord + Clone, V: Clone> RecentResources<K, V> {
    /// Records that a caller got the response that the resource exists.
    pub(in crate::disk) fn record_created(&self, id: &K, row: &V) {
        self.record_observed(id);
        lock(&self.0).add_event(id, Some(row.clone()));
    }

    pub(in crate::disk) fn record_observed(&self, id: &K) {
        let mut state = lock(&self.0);
        if state.existing.len() < MAX_FILTERED_ROWS {
            state.existing.insert(id.clone());
        }
    }

    /// Records that a caller got the response that the resource does not exist.
    pub(in crate::disk) fn record_deleted(&self, id: &K) {
        let mut state = lock(&self.0);
        state.existing.remove(id);
        state.add_event(id, None);
    }

    /// The recent changes. Call this before the reads, which may last longer than the changes are kept.
    pub(in crate::disk) fn recent_changes(&self) -> RecentChanges<K, V> {
        let state = lock(&self.0);
        let mut changes = RecentChanges {
            created: BTreeMap::new(),
            deleted: BTreeSet::new(),
            generation: state.generation,
        };
        for (_, id, row) in state.events.iter().filter(|event| !event.0.has_passed()) {
            match row {
                Some(row) => drop(changes.created.insert(id.clone(), row.clone())),
                None => drop(changes.deleted.insert(id.clone())),
            }
        }
        changes
    }

    /// Whether a resource is known to exist.
    pub(in crate::disk) fn any_exists(&self) -> bool {
        !lock(&self.0).existing.is_empty()
    }

    /// Whether the cloud would truncate a listing with a filter by tags.
    pub(in crate::disk) fn exceeds_filter(&self) -> bool {
        lock(&self.0).exceeds_filter
    }

    /// Records the number of rows of a listing. Returns whether a filter by tags truncates it.
    pub(in crate::disk) fn record_rows(&self, rows: usize) -> bool {
        let exceeds = rows >= MAX_FILTERED_ROWS;
        if std::mem::replace(&mut lock(&self.0).exceeds_filter, exceeds) != exceeds {
            let with = if exceeds { "without" } else { "with" };
            tracing::info!(rows, "listings now run {with} the filter by tags");
        }
        exceeds
    }

    /// Records a complete listing that started at `changes`, unless resources were created or deleted meanwhile.
    pub(in crate::disk) fn record_listing(&self, changes: &RecentChanges<K, V>, ids: impl Iterator<Item = K>) {
        let ids = ids.take(MAX_FILTERED_ROWS).collect();
        let mut state = lock(&self.0);
        if state.generation == changes.generation {
            state.existing = ids;
        }
    }
}

impl<K: Clone, V> State<K, V> {
    fn add_event(&mut self, id: &K, row: Option<V>) {
        self.generation += 1;
        let events = &mut self.events;
        while events.len() >= CAPACITY || events.front().is_some_and(|event| event.0.has_passed()) {
            events.pop_front();
        }
        events.push_back((Deadline::after(READ_LAG), id.clone(), row));
    }
}

impl<K: Ord, V> RecentChanges<K, V> {
    /// Whether a caller got the response that the resource does not exist: its row is stale.
    pub(in crate::disk) fn is_deleted(&self, id: &K) -> bool {
        self.deleted.contains(id)
    }

    /// The resources that reads may not show yet. IDs of deleted resources are never reused.
    pub(in crate::disk) fn into_created(self) -> impl Iterator<Item = V> {
        let created = self.created.into_iter();
        let created = created.filter(move |(id, _)| !self.deleted.contains(id));
        created.map(|(_, row)| row)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn created(recent: &RecentResources<u32, &'static str>) -> Vec<&'static str> {
        recent.recent_changes().into_created().collect()
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_kept_for_the_lag_of_reads() {
        let recent = RecentResources::default();
        recent.record_created(&1, &"one");
        recent.record_deleted(&3);
        assert_eq!(created(&recent), ["one"]);
        assert!(recent.recent_changes().is_deleted(&3) && !recent.recent_changes().is_deleted(&1));
        tokio::time::advance(READ_LAG + Duration::from_millis(1)).await;
        assert!(created(&recent).is_empty() && !recent.recent_changes().is_deleted(&3));
        recent.record_deleted(&4);
        assert_eq!(lock(&recent.0).events.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn deleted_id_is_not_reused() {
        let recent = RecentResources::default();
        recent.record_deleted(&1);
        recent.record_created(&1, &"one");
        assert!(created(&recent).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn events_and_resources_are_bounded() {
        let recent = RecentResources::default();
        for id in 0..3000 {
            recent.record_created(&id, &"row");
        }
        assert_eq!(lock(&recent.0).events.len(), CAPACITY);
        assert_eq!(lock(&recent.0).existing.len(), MAX_FILTERED_ROWS);
        recent.record_listing(&recent.recent_changes(), 0..5000);
        assert_eq!(lock(&recent.0).existing.len(), MAX_FILTERED_ROWS);
    }

    #[tokio::test(start_paused = true)]
    async fn created_or_listed_resource_exists_until_deleted() {
        let recent = RecentResources::default();
        assert!(!recent.any_exists());
        recent.record_created(&1, &"one");
        assert!(recent.any_exists());
        recent.record_deleted(&1);
        assert!(!recent.any_exists());
        recent.record_listing(&recent.recent_changes(), [2, 3].into_iter());
        recent.record_deleted(&2);
        assert!(recent.any_exists());
        recent.record_listing(&recent.recent_changes(), [].into_iter());
        assert!(!recent.any_exists());
    }

    #[tokio::test(start_paused = true)]
    async fn changes_during_a_listing_override_it() {
        let recent = RecentResources::default();
        recent.record_created(&1, &"one");
        let changes = recent.recent_changes();
        recent.record_deleted(&1);
        recent.record_listing(&changes, [1].into_iter());
        assert!(!recent.any_exists());
        let changes = recent.recent_changes();
        recent.record_created(&2, &"two");
        recent.record_listing(&changes, [].into_iter());
        assert!(recent.any_exists());
    }
}
