//! Resources that must be visible to the access key. A description of another resource includes one of them, so that an
//! absence is not due to a missing permission, another account or region.

use std::collections::VecDeque;

/// Maximum number of canaries. Several, because any of them may be deleted at any time.
const CAPACITY: usize = 64;

/// The most recently observed canaries, the newest first. They are forgotten when the access key changes.
pub(super) struct Canaries<K> {
    ids: VecDeque<K>,
    key: u64,
}

impl<K: Clone + Eq> Canaries<K> {
    pub(super) fn new() -> Self {
        Self {
            ids: VecDeque::new(),
            key: 0,
        }
    }

    /// Forgets the canaries of another access key.
    pub(super) fn set_key(&mut self, key: u64) {
        if self.key != key {
            self.key = key;
            self.ids.clear();
        }
    }

    pub(super) fn insert(&mut self, id: &K) {
        self.remove(id);
        self.ids.push_front(id.clone());
        self.ids.truncate(CAPACITY);
    }

    pub(super) fn remove(&mut self, id: &K) {
        self.ids.retain(|known| known != id);
    }

    pub(super) fn contains(&self, id: &K) -> bool {
        self.ids.contains(id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The newest canary that is not one of these ids; none if all of these are canaries.
    pub(super) fn newest_except(&self, ids: &[K]) -> Option<K> {
        if ids.iter().all(|id| self.ids.contains(id)) {
            return None;
        }
        self.ids.iter().find(|known| !ids.contains(known)).cloned()
    }
}
