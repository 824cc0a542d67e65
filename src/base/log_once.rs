//! Limits logging of recurring conditions: a message is logged only if it differs from the previous one of its key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;

use ecs::base::lock;

#[derive(Debug)]
pub struct LogOnce<K = &'static str>(Mutex<HashMap<K, String>>);

impl<K> Default for LogOnce<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> LogOnce<K> {
    /// Records the message, and returns whether it differs from the previous message of the key. An empty message means
    /// that the condition has ended: it clears the key and is not logged.
    pub fn should_log(&self, key: K, message: &str) -> bool {
        if message.is_empty() {
            self.clear(&key);
            return false;
        }
        let mut messages = lock(&self.0);
        let previous = messages.insert(key, message.to_owned());
        previous.is_none_or(|previous| previous != message)
    }

    /// Removes the message of the key; returns whether it had one.
    pub fn clear(&self, key: &K) -> bool {
        lock(&self.0).remove(key).is_some()
    }

    /// Removes the messages of all matching keys; returns whether there were any.
    pub fn clear_matching(&self, matches: impl Fn(&K) -> bool) -> bool {
        let mut messages = lock(&self.0);
        let before = messages.len();
        messages.retain(|key, _| !matches(key));
        messages.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_logged_again_only_after_another_message_or_a_clear() {
        let log_once = LogOnce::default();
        let should_log = |message| log_once.should_log("a", message);
        assert_eq!(["x", "x", "y", "x"].map(should_log), [true, false, true, true]);
        assert_eq!(["", "x", "x"].map(should_log), [false, true, false]);
        assert!(log_once.should_log("b", "x"));
        assert!(log_once.clear(&"b") && !log_once.clear(&"b"));
    }
}
