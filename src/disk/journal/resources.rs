//! Resources that this process created or deleted recently. Stale reads show neither; a listing must not contradict earlier
//! responses, and an empty listing proves nothing while a resource is known to exist.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::base::Deadline;
use crate::disk::stale_read::READ_LAG;

/// How many events and how many resources are remembered. Forgetting an event is as safe as a restart.
const MOST: usize = 1000;

#[derive(Debug)]
pub(in crate::disk) struct RecentResources<K, V>(Mutex<State<K, V>>);

#[derive(Debug)]
struct State<K, V> {
    /// Created with the row, or deleted, the oldest first; each for the lag of reads.
    events: VecDeque<(Deadline, K, Option<V>)>,
    /// A sample of the resources that were created or listed and not deleted.
    existing: BTreeSet<K>,
    /// How often one was created or deleted.
    changes: u64,
}

/// What reads that begin now may not show yet, or still show.
#[derive(Debug)]
pub(in crate::disk) struct Known<K, V> {
    created: BTreeMap<K, V>,
    deleted: BTreeSet<K>,
    changes: u64,
}

impl<K, V> Default for RecentResources<K, V> {
    fn default() -> Self {
        Self(Mutex::new(State {
            events: VecDeque::new(),
            existing: BTreeSet::new(),
            changes: 0,
        }))
    }
}

impl<K: Ord + Clone, V: Clone> RecentResources<K, V> {
    /// Records that a caller got the response that the resource exists.
    pub(in crate::disk) fn created(&self, id: &K, row: &V) {
        self.observed(id);
        self.lock().note(id, Some(row.clone()));
    }

    /// A response has the resource.
    pub(in crate::disk) fn observed(&self, id: &K) {
        let mut state = self.lock();
        if state.existing.len() < MOST {
            state.existing.insert(id.clone());
        }
    }

    /// Records that a caller got the response that the resource does not exist.
    pub(in crate::disk) fn deleted(&self, id: &K) {
        let mut state = self.lock();
        state.existing.remove(id);
        state.note(id, None);
    }

    /// To be asked before reads begin, since they may take longer than it is remembered.
    pub(in crate::disk) fn known(&self) -> Known<K, V> {
        let state = self.lock();
        let mut known = Known {
            created: BTreeMap::new(),
            deleted: BTreeSet::new(),
            changes: state.changes,
        };
        for (_, id, row) in state.events.iter().filter(|event| !event.0.has_passed()) {
            match row {
                Some(row) => drop(known.created.insert(id.clone(), row.clone())),
                None => drop(known.deleted.insert(id.clone())),
            }
        }
        known
    }

    /// Whether any resource is known to exist.
    pub(in crate::disk) fn any(&self) -> bool {
        !self.lock().existing.is_empty()
    }

    /// A complete listing, begun when this was known, has returned these. If any was created or deleted meanwhile, it may
    /// be missing from them or among them.
    pub(in crate::disk) fn listed(&self, known: &Known<K, V>, ids: impl Iterator<Item = K>) {
        let ids = ids.take(MOST).collect();
        let mut state = self.lock();
        if state.changes == known.changes {
            state.existing = ids;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone, V> State<K, V> {
    fn note(&mut self, id: &K, row: Option<V>) {
        self.changes += 1;
        let events = &mut self.events;
        while events.len() >= MOST || events.front().is_some_and(|event| event.0.has_passed()) {
            events.pop_front();
        }
        events.push_back((Deadline::after(READ_LAG), id.clone(), row));
    }
}

impl<K: Ord, V> Known<K, V> {
    /// Whether a caller got the response that the resource does not exist: its row is stale.
    pub(in crate::disk) fn is_deleted(&self, id: &K) -> bool {
        self.deleted.contains(id)
    }

    /// What reads may not show yet. A deleted id is never used again.
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
        recent.known().into_created().collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_told_is_held_against_rows_only_for_the_lag_of_reads() {
        let recent = RecentResources::default();
        recent.created(&1, &"one");
        recent.deleted(&3);
        assert_eq!(created(&recent), ["one"]);
        assert!(recent.known().is_deleted(&3) && !recent.known().is_deleted(&1));
        tokio::time::advance(READ_LAG + Duration::from_millis(1)).await;
        assert!(created(&recent).is_empty() && !recent.known().is_deleted(&3));
        recent.deleted(&4);
        assert_eq!(recent.lock().events.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deleted_id_is_never_used_again() {
        let recent = RecentResources::default();
        recent.deleted(&1);
        recent.created(&1, &"one");
        assert!(created(&recent).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_storm_of_events_takes_no_more_room() {
        let recent = RecentResources::default();
        for id in 0..3000 {
            recent.created(&id, &"row");
        }
        assert_eq!(recent.lock().events.len(), MOST);
        assert_eq!(recent.lock().existing.len(), MOST);
        recent.listed(&recent.known(), 0..5000);
        assert_eq!(recent.lock().existing.len(), MOST);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_created_or_listed_exists_until_it_is_deleted() {
        let recent = RecentResources::default();
        assert!(!recent.any());
        recent.created(&1, &"one");
        assert!(recent.any());
        recent.deleted(&1);
        assert!(!recent.any());
        recent.listed(&recent.known(), [2, 3].into_iter());
        recent.deleted(&2);
        assert!(recent.any());
        recent.listed(&recent.known(), [].into_iter());
        assert!(!recent.any());
    }

    #[tokio::test(start_paused = true)]
    async fn a_listing_does_not_contradict_what_happened_while_it_was_read() {
        let recent = RecentResources::default();
        recent.created(&1, &"one");
        let known = recent.known();
        recent.deleted(&1);
        recent.listed(&known, [1].into_iter());
        assert!(!recent.any());
        let known = recent.known();
        recent.created(&2, &"two");
        recent.listed(&known, [].into_iter());
        assert!(recent.any());
    }
}
