//! One operation at a time for each key (CSI: the plugin should answer `ABORTED` when an operation
//! is already pending for the volume).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The keys that are held now. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct KeyedLocks {
    held: Arc<Mutex<HashSet<String>>>,
}

/// Holds one key until it is dropped.
#[derive(Debug)]
#[must_use = "dropping the guard releases the key"]
pub struct Guard {
    held: Arc<Mutex<HashSet<String>>>,
    key: String,
}

impl KeyedLocks {
    /// Takes the key; none when somebody else holds it.
    pub fn try_lock(&self, key: &str) -> Option<Guard> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(key.to_owned()).then(|| Guard {
            held: Arc::clone(&self.held),
            key: key.to_owned(),
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_is_exclusive_and_other_keys_are_not() {
        let locks = KeyedLocks::default();
        let first = locks.try_lock("d-1");
        assert!(first.is_some());
        assert!(locks.try_lock("d-1").is_none());
        assert!(locks.try_lock("d-2").is_some());
    }

    #[test]
    fn a_dropped_guard_releases_its_key_and_leaves_nothing_behind() {
        let locks = KeyedLocks::default();
        drop(locks.try_lock("d-1"));
        assert!(locks.held.lock().unwrap().is_empty());
        assert!(locks.try_lock("d-1").is_some());
    }
}
