//! Facts that count for a while.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::base::Deadline;

/// Facts by key, each until its time is over.
#[derive(Debug)]
pub(in crate::disk) struct Recent<K, V>(Mutex<HashMap<K, (Deadline, V)>>);

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone, V: Clone> Recent<K, V> {
    /// Remembers the fact, instead of an earlier one of this key.
    pub(in crate::disk) fn note(&self, key: &K, lasts: Duration, fact: V) {
        let mut facts = self.lock();
        let now = Deadline::after(Duration::ZERO);
        facts.retain(|_, (until, _)| *until > now);
        facts.insert(key.clone(), (Deadline::after(lasts), fact));
    }

    /// The fact, unless its time is over.
    pub(in crate::disk) fn get(&self, key: &K) -> Option<V> {
        let facts = self.lock();
        let (until, fact) = facts.get(key)?;
        (!until.has_passed()).then(|| fact.clone())
    }

    /// As [`Self::get`], once.
    pub(in crate::disk) fn take(&self, key: &K) -> Option<V> {
        let (until, fact) = self.lock().remove(key)?;
        (!until.has_passed()).then_some(fact)
    }

    /// Whether there is a fact, also one whose time is over but that no later one has displaced.
    pub(in crate::disk) fn contains(&self, key: &K) -> bool {
        self.lock().contains_key(key)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, (Deadline, V)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_fact_counts_only_for_its_time_and_takes_no_room_after_it() {
        let recent = Recent::default();
        let second = Duration::from_secs(1);
        recent.note(&1, second, "a");
        recent.note(&2, 3 * second, "b");
        assert_eq!((recent.get(&1), recent.get(&3)), (Some("a"), None));
        tokio::time::advance(2 * second).await;
        assert_eq!((recent.get(&1), recent.get(&2)), (None, Some("b")));
        recent.note(&3, second, "c");
        assert_eq!(recent.lock().len(), 2);
        assert_eq!((recent.take(&3), recent.take(&3)), (Some("c"), None));
    }
}
