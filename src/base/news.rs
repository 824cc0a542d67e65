//! What was last said of a matter. Some things are looked at every few seconds, and the log shall have what is new.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

/// What was last said, of each matter.
#[derive(Debug)]
pub struct News<M = &'static str>(Mutex<HashMap<M, String>>);

impl<M> Default for News<M> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<M: Eq + Hash> News<M> {
    /// Whether these words are others than the last ones of the matter. They count as said then. No words mean that there is
    /// nothing to say any more, which is no news.
    pub fn is_new(&self, matter: M, words: &str) -> bool {
        if words.is_empty() {
            self.is_over(&matter);
            return false;
        }
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = said.insert(matter, words.to_owned());
        before.is_none_or(|before| before != words)
    }

    /// Forgets the matter; whether there was something to say of it.
    pub fn is_over(&self, matter: &M) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.remove(matter).is_some()
    }

    /// Forgets all matters that are meant; whether there was something to say of one.
    pub fn are_over(&self, is_meant: impl Fn(&M) -> bool) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = said.len();
        said.retain(|matter, _| !is_meant(matter));
        said.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_are_news_once_until_there_was_nothing_or_something_else() {
        let news = News::default();
        let is_new = |words| news.is_new("a", words);
        assert_eq!(["x", "x", "y", "x"].map(is_new), [true, false, true, true]);
        assert_eq!(["", "x", "x"].map(is_new), [false, true, false]);
        assert!(news.is_new("b", "x"));
        assert!(news.is_over(&"b") && !news.is_over(&"b"));
    }
}
