//! Which resources of ours exist, as far as this process knows: those that it has created or listed and not deleted.
//! Where there is one, a response without any row does not prove that there is none.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many are remembered. One is enough; the others are for when it is deleted.
const MOST: usize = 1000;

/// A sample of the resources of one kind.
#[derive(Debug)]
pub(in crate::disk) struct Existing<K>(Mutex<Sample<K>>);

#[derive(Debug)]
struct Sample<K> {
    ids: BTreeSet<K>,
    /// How often one was created or deleted.
    changes: u64,
}

#[derive(Debug)]
pub(in crate::disk) struct Listing<'a, K> {
    existing: &'a Existing<K>,
    changes: u64,
}

impl<K> Default for Existing<K> {
    fn default() -> Self {
        Self(Mutex::new(Sample {
            ids: BTreeSet::new(),
            changes: 0,
        }))
    }
}

impl<K: Ord + Clone> Existing<K> {
    /// The resource has been created, or found.
    pub(in crate::disk) fn created(&self, id: &K) {
        let mut sample = self.lock();
        sample.changes += 1;
        if sample.ids.len() < MOST {
            sample.ids.insert(id.clone());
        }
    }

    pub(in crate::disk) fn deleted(&self, id: &K) {
        let mut sample = self.lock();
        sample.changes += 1;
        sample.ids.remove(id);
    }

    /// A complete listing begins.
    pub(in crate::disk) fn begin(&self) -> Listing<'_, K> {
        Listing {
            existing: self,
            changes: self.lock().changes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sample<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone> Listing<'_, K> {
    /// Whether any resource is known to exist now.
    pub(in crate::disk) fn any(&self) -> bool {
        !self.existing.lock().ids.is_empty()
    }

    /// The listing has shown these. What was created or deleted meanwhile may be missing from them, or among them: then
    /// they tell nothing.
    pub(in crate::disk) fn shown(self, ids: impl Iterator<Item = K>) {
        let ids = ids.take(MOST).collect();
        let mut sample = self.existing.lock();
        if sample.changes == self.changes {
            sample.ids = ids;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_created_or_listed_exists_until_it_is_deleted() {
        let existing = Existing::default();
        assert!(!existing.begin().any());
        existing.created(&1);
        assert!(existing.begin().any());
        existing.deleted(&1);
        assert!(!existing.begin().any());
        existing.begin().shown([2, 3].into_iter());
        existing.deleted(&2);
        assert!(existing.begin().any());
        existing.begin().shown([].into_iter());
        assert!(!existing.begin().any());
    }

    #[test]
    fn a_listing_does_not_contradict_what_happened_while_it_was_read() {
        let existing = Existing::default();
        existing.created(&1);
        let listing = existing.begin();
        existing.deleted(&1);
        listing.shown([1].into_iter());
        assert!(!existing.begin().any());
        let listing = existing.begin();
        existing.created(&2);
        listing.shown([].into_iter());
        assert!(existing.begin().any());
    }

    #[test]
    fn many_take_no_more_room() {
        let existing = Existing::default();
        existing.begin().shown(0..5000);
        existing.created(&9999);
        assert_eq!(existing.lock().ids.len(), MOST);
    }
}
