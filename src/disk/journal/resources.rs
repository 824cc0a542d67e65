//! What this process has just made or deleted. A read of before does not show the one and still shows
//! the other; neither a list nor a look for an earlier disk may contradict what callers were told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::existing::Existing;
use crate::base::Deadline;
use crate::disk::stale_read::LAG;

/// How many events are remembered. Forgetting one is as safe as a restart.
const MOST: usize = 1000;

/// The rows that callers were told of within the lag of reads, and the ids that they were told are
/// gone, the oldest first.
#[derive(Debug)]
pub(in crate::disk) struct RecentResources<K, V> {
    events: Mutex<VecDeque<Event<K, V>>>,
    /// Beyond the lag of reads.
    pub(in crate::disk) existing: Existing<K>,
}

#[derive(Debug)]
struct Event<K, V> {
    until: Deadline,
    id: K,
    /// None when it is gone.
    row: Option<V>,
}

/// What reads that begin now may not show yet, or still show.
#[derive(Debug)]
pub(in crate::disk) struct Known<K, V> {
    made: BTreeMap<K, V>,
    gone: BTreeSet<K>,
}

impl<K, V> Default for RecentResources<K, V> {
    fn default() -> Self {
        Self {
            events: Mutex::default(),
            existing: Existing::default(),
        }
    }
}

impl<K: Ord + Clone, V: Clone> RecentResources<K, V> {
    /// A caller is told that it is there.
    pub(in crate::disk) fn made(&self, id: &K, row: &V) {
        self.existing.created(id);
        self.note(id, Some(row.clone()));
    }

    /// A caller is told that it is gone.
    pub(in crate::disk) fn gone(&self, id: &K) {
        self.existing.deleted(id);
        self.note(id, None);
    }

    /// What to hold against reads. To be asked before they begin, since they may take longer than it
    /// is remembered; what happens while they run may show in them or not.
    pub(in crate::disk) fn known(&self) -> Known<K, V> {
        let (mut made, mut gone) = (BTreeMap::new(), BTreeSet::new());
        for event in self.lock().iter().filter(|event| !event.until.is_over()) {
            match &event.row {
                Some(row) => {
                    made.insert(event.id.clone(), row.clone());
                }
                None => {
                    gone.insert(event.id.clone());
                }
            }
        }
        Known { made, gone }
    }

    fn note(&self, id: &K, row: Option<V>) {
        let mut events = self.lock();
        while events.len() >= MOST || events.front().is_some_and(|event| event.until.is_over()) {
            events.pop_front();
        }
        events.push_back(Event {
            until: Deadline::after(LAG),
            id: id.clone(),
            row,
        });
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Event<K, V>>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord, V> Known<K, V> {
    /// Whether a caller was told that it is gone: a row of it is old.
    pub(in crate::disk) fn is_gone(&self, id: &K) -> bool {
        self.gone.contains(id)
    }

    /// Takes out of the rows what is gone and adds what is missing, where it fits. An id that is gone
    /// never comes back.
    pub(in crate::disk) fn correct(
        mut self,
        rows: &mut Vec<V>,
        id: impl Fn(&V) -> &K,
        fits: impl Fn(&V) -> bool,
    ) {
        rows.retain(|row| {
            self.made.remove(id(row));
            !self.gone.contains(id(row))
        });
        let made = self.made.into_iter();
        let missing = made.filter(|(id, row)| !self.gone.contains(id) && fits(row));
        rows.extend(missing.map(|(_, row)| row));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    type Row = (u32, &'static str);

    fn corrected(recent: &RecentResources<u32, Row>, rows: &[Row]) -> Vec<Row> {
        let mut rows = rows.to_vec();
        let known = recent.known();
        known.correct(&mut rows, |row| &row.0, |row| row.1 != "other");
        rows
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_told_is_held_against_rows_only_for_the_lag_of_reads() {
        let recent = RecentResources::default();
        recent.made(&1, &(1, "told"));
        recent.made(&2, &(2, "other"));
        recent.gone(&3);
        assert_eq!(corrected(&recent, &[(3, "read")]), [(1, "told")]);
        // What a read shows is no older than what was told.
        assert_eq!(corrected(&recent, &[(1, "read")]), [(1, "read")]);
        tokio::time::advance(LAG + Duration::from_millis(1)).await;
        assert_eq!(corrected(&recent, &[(3, "read")]), [(3, "read")]);
        recent.gone(&4);
        assert_eq!(recent.lock().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_gone_stays_gone_whoever_still_saw_it() {
        let recent = RecentResources::default();
        recent.gone(&1);
        recent.made(&1, &(1, "told"));
        assert_eq!(corrected(&recent, &[]), []);
        assert_eq!(corrected(&recent, &[(1, "read")]), []);
    }

    #[tokio::test(start_paused = true)]
    async fn a_storm_of_events_takes_no_more_room() {
        let recent = RecentResources::default();
        for id in 0..3000 {
            recent.made(&id, &(id, "told"));
        }
        assert_eq!(recent.lock().len(), MOST);
        assert_eq!(corrected(&recent, &[]).last(), Some(&(2999, "told")));
    }
}
