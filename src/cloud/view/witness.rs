//! Resources that a describe must return: if it returns one of them, then the absence of another is not due to a
//! missing permission, which the cloud reports as an empty list.

use std::collections::VecDeque;

/// How many are remembered. Several, because any of them may be deleted at any time.
const WITNESSES: usize = 64;

/// Ids that were returned recently, the newest last.
#[derive(Debug)]
pub(super) struct Witnesses<K>(VecDeque<K>);

impl<K> Default for Witnesses<K> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<K: Clone + Eq> Witnesses<K> {
    pub(super) fn remember(&mut self, key: &K) {
        if self.0.back() == Some(key) {
            return;
        }
        self.forget(key);
        if self.0.len() == WITNESSES {
            self.0.pop_front();
        }
        self.0.push_back(key.clone());
    }

    pub(super) fn forget(&mut self, key: &K) {
        self.0.retain(|known| known != key);
    }

    /// What to describe together with these ids: none if all of them are themselves expected to be there.
    pub(super) fn beside(&self, keys: &[K]) -> Option<K> {
        if keys.iter().all(|key| self.0.contains(key)) {
            return None;
        }
        let mut newest_first = self.0.iter().rev();
        newest_first.find(|known| !keys.contains(known)).cloned()
    }
}
