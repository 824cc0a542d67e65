//! Locks by key that are taken at once or not at all (CSI: the plugin should answer `ABORTED` when an operation is
//! already pending for the volume).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a key is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Beside others that share it.
    Shared,
    /// By nobody else.
    Exclusive,
}

/// The keys that are locked now. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct KeyedLocks {
    held: Arc<Mutex<HashMap<String, Holders>>>,
}

/// Who holds a key; never nobody.
#[derive(Debug)]
enum Holders {
    Shared(usize),
    One,
}

/// Holds keys until it is dropped.
#[derive(Debug)]
#[must_use = "dropping the guard releases the keys"]
pub struct Guard {
    locks: KeyedLocks,
    keys: Vec<String>,
}

impl KeyedLocks {
    /// Locks the key exclusively; none when it is held.
    pub fn try_lock(&self, key: &str) -> Option<Guard> {
        self.try_lock_all(vec![(key.to_owned(), Mode::Exclusive)])
    }

    /// Locks all of these keys, which must be distinct; none of them when one is held otherwise than they allow.
    pub fn try_lock_all(&self, keys: Vec<(String, Mode)>) -> Option<Guard> {
        let mut held = self.lock();
        let is_free = |(key, mode): &(String, Mode)| match held.get(key) {
            None => true,
            Some(Holders::Shared(_)) => *mode == Mode::Shared,
            Some(Holders::One) => false,
        };
        if !keys.iter().all(is_free) {
            return None;
        }
        for (key, mode) in &keys {
            let holders = held.entry(key.clone()).or_insert(Holders::Shared(0));
            match (mode, holders) {
                (Mode::Shared, Holders::Shared(count)) => *count += 1,
                (_, holders) => *holders = Holders::One,
            }
        }
        Some(Guard {
            locks: self.clone(),
            keys: keys.into_iter().map(|(key, _)| key).collect(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Holders>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut held = self.locks.lock();
        for key in &self.keys {
            match held.get_mut(key) {
                Some(Holders::Shared(count)) if *count > 1 => *count -= 1,
                _ => drop(held.remove(key)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &[(&str, Mode)]) -> Vec<(String, Mode)> {
        let own = |(key, mode): &(&str, Mode)| ((*key).to_owned(), *mode);
        keys.iter().map(own).collect()
    }

    #[test]
    fn one_key_is_exclusive_and_other_keys_are_not() {
        let locks = KeyedLocks::default();
        let first = locks.try_lock("d-1");
        assert!(first.is_some());
        assert!(locks.try_lock("d-1").is_none());
        assert!(locks.try_lock("d-2").is_some());
    }

    #[test]
    fn a_shared_key_is_held_by_many_and_exclusively_only_after_the_last_of_them() {
        let locks = KeyedLocks::default();
        let shared = || locks.try_lock_all(keys(&[("d-1", Mode::Shared)]));
        let (one, two) = (shared(), shared());
        assert!(one.is_some() && two.is_some());
        drop(one);
        assert!(locks.try_lock("d-1").is_none());
        drop(two);
        let alone = locks.try_lock("d-1");
        assert!(alone.is_some() && shared().is_none());
    }

    #[test]
    fn all_keys_are_locked_or_none() {
        let locks = KeyedLocks::default();
        let held = locks.try_lock("d-1/i-1");
        let both = |node: &str| {
            let node = format!("d-1/{node}");
            locks.try_lock_all(keys(&[("d-1", Mode::Shared), (&node, Mode::Exclusive)]))
        };
        assert!(both("i-1").is_none());
        // Nothing of the attempt is left.
        drop(locks.try_lock("d-1").unwrap());
        let other = both("i-2");
        assert!(other.is_some() && locks.try_lock("d-1").is_none());
        drop(held);
        assert!(both("i-1").is_some());
    }

    #[test]
    fn a_dropped_guard_releases_its_keys_and_leaves_nothing_behind() {
        let locks = KeyedLocks::default();
        drop(locks.try_lock_all(keys(&[("a", Mode::Shared), ("b", Mode::Exclusive)])));
        assert!(locks.lock().is_empty());
    }
}
