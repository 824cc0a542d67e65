//! Locks by key that are acquired immediately or not at all (CSI: the plugin should return `ABORTED` if an operation is
//! already pending for the volume).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use ecs::base::lock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Compatible with other shared locks of the key.
    Shared,
    Exclusive,
}

/// The currently locked keys. Clones share the state.
#[derive(Debug, Clone, Default)]
pub struct KeyedLocks {
    /// The mode and the number of holders of each key.
    held: Arc<Mutex<HashMap<String, (LockMode, usize)>>>,
}

#[derive(Debug)]
#[must_use = "dropping the guard releases the keys"]
pub struct LockGuard {
    locks: KeyedLocks,
    keys: Vec<String>,
}

impl KeyedLocks {
    /// Locks all keys, which must be distinct; `None`, and no key is locked, if one is locked in an incompatible mode.
    pub fn try_lock_all(&self, keys: Vec<(String, LockMode)>) -> Option<LockGuard> {
        let mut held = lock(&self.held);
        let is_compatible = |(key, mode): &(String, LockMode)| {
            let both = held.get(key).map(|(held, _)| (*held, *mode));
            both.is_none_or(|both| both == (LockMode::Shared, LockMode::Shared))
        };
        if !keys.iter().all(is_compatible) {
            return None;
        }
        for (key, mode) in &keys {
            held.entry(key.clone()).or_insert((*mode, 0)).1 += 1;
        }
        Some(LockGuard {
            locks: self.clone(),
            keys: keys.into_iter().map(|(key, _)| key).collect(),
        })
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        let mut held = lock(&self.locks.held);
        for key in &self.keys {
            match held.get_mut(key) {
                Some((_, count)) if *count > 1 => *count -= 1,
                _ => drop(held.remove(key)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &[(&str, LockMode)]) -> Vec<(String, LockMode)> {
        let owned = |(key, mode): &(&str, LockMode)| ((*key).to_owned(), *mode);
        keys.iter().map(owned).collect()
    }

    fn try_lock(locks: &KeyedLocks, key: &str) -> Option<LockGuard> {
        locks.try_lock_all(keys(&[(key, LockMode::Exclusive)]))
    }

    #[test]
    fn an_exclusive_lock_does_not_affect_other_keys() {
        let locks = KeyedLocks::default();
        let first = try_lock(&locks, "d-1");
        assert!(first.is_some());
        assert!(try_lock(&locks, "d-1").is_none());
        assert!(try_lock(&locks, "d-2").is_some());
    }

    #[test]
    fn a_shared_key_can_be_locked_exclusively_only_after_its_last_holder() {
        let locks = KeyedLocks::default();
        let shared = || locks.try_lock_all(keys(&[("d-1", LockMode::Shared)]));
        let (one, two) = (shared(), shared());
        assert!(one.is_some() && two.is_some());
        drop(one);
        assert!(try_lock(&locks, "d-1").is_none());
        drop(two);
        let alone = try_lock(&locks, "d-1");
        assert!(alone.is_some() && shared().is_none());
    }

    #[test]
    fn either_all_keys_are_locked_or_none() {
        let locks = KeyedLocks::default();
        let held = try_lock(&locks, "d-1/i-1");
        let both = |node: &str| {
            let node = format!("d-1/{node}");
            locks.try_lock_all(keys(&[("d-1", LockMode::Shared), (&node, LockMode::Exclusive)]))
        };
        assert!(both("i-1").is_none());
        // The failed attempt locked nothing.
        drop(try_lock(&locks, "d-1").unwrap());
        let other = both("i-2");
        assert!(other.is_some() && try_lock(&locks, "d-1").is_none());
        drop(held);
        assert!(both("i-1").is_some());
    }

    #[test]
    fn a_dropped_guard_releases_its_keys() {
        let locks = KeyedLocks::default();
        drop(locks.try_lock_all(keys(&[("a", LockMode::Shared), ("b", LockMode::Exclusive)])));
        assert!(lock(&locks.held).is_empty());
    }
}
