use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::Duration;

use crate::base::{Deadline, lock};

/// Values by key. Inserts remove expired entries.
#[derive(Debug)]
pub(in crate::disk) struct TtlCache<K, V>(Mutex<HashMap<K, (Deadline, V)>>);

impl<K, V> Default for TtlCache<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone, V: Clone> TtlCache<K, V> {
    pub(in crate::disk) fn insert(&self, key: &K, ttl: Duration, value: V) {
        let mut entries = lock(&self.0);
        let now = Deadline::after(Duration::ZERO);
        entries.retain(|_, (expires, _)| *expires > now);
        entries.insert(key.clone(), (Deadline::after(ttl), value));
    }

    pub(in crate::disk) fn get(&self, key: &K) -> Option<V> {
        let entries = lock(&self.0);
        let (expires, value) = entries.get(key)?;
        (!expires.has_passed()).then(|| value.clone())
    }

    pub(in crate::disk) fn remove(&self, key: &K) -> Option<V> {
        let (expires, value) = lock(&self.0).remove(key)?;
        (!expires.has_passed()).then_some(value)
    }

    /// Whether the key has an entry, which may be expired.
    pub(in crate::disk) fn contains_key(&self, key: &K) -> bool {
        lock(&self.0).contains_key(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn expired_entries_are_not_returned_and_are_removed() {
        let cache = TtlCache::default();
        let second = Duration::from_secs(1);
        cache.insert(&1, second, "a");
        cache.insert(&2, 3 * second, "b");
        assert_eq!((cache.get(&1), cache.get(&3)), (Some("a"), None));
        tokio::time::advance(2 * second).await;
        assert_eq!((cache.get(&1), cache.get(&2)), (None, Some("b")));
        cache.insert(&3, second, "c");
        assert_eq!(lock(&cache.0).len(), 2);
        assert_eq!((cache.remove(&3), cache.remove(&3)), (Some("c"), None));
    }
}
