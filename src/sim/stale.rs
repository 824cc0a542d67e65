//! The replica that reads are served from: it lags, so it must remember how rows were.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use jiff::Timestamp;

/// The versions of rows by id, each from the time at which it began.
#[derive(Debug)]
pub(crate) struct History<T> {
    versions: BTreeMap<String, VecDeque<(Timestamp, Option<T>)>>,
}

impl<T> Default for History<T> {
    fn default() -> Self {
        Self {
            versions: BTreeMap::new(),
        }
    }
}

impl<T: Clone> History<T> {
    /// Remembers a change at `now` and forgets what nobody reads any more at `horizon`.
    pub(crate) fn note(
        &mut self,
        id: &str,
        old: Option<&T>,
        new: Option<&T>,
        now: Timestamp,
        horizon: Timestamp,
    ) {
        let versions = self.versions.entry(id.to_owned()).or_default();
        if versions.is_empty() {
            versions.push_back((Timestamp::MIN, old.cloned()));
        }
        versions.push_back((now, new.cloned()));
        while versions.get(1).is_some_and(|(from, _)| *from <= horizon) {
            versions.pop_front();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.versions.clear();
    }

    /// The row as it was: none when nothing is remembered, `Some(None)` when it was not there.
    pub(crate) fn at(&self, id: &str, time: Timestamp) -> Option<Option<&T>> {
        let versions = self.versions.get(id)?;
        let version = versions.iter().rev().find(|(from, _)| *from <= time)?;
        Some(version.1.as_ref())
    }

    /// The ids of which something is remembered.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &String> {
        self.versions.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_row_is_seen_as_it_was() {
        let mut history = History::default();
        history.note("d", None, Some(&"new"), at(10), at(0));
        history.note("d", Some(&"new"), Some(&"newer"), at(20), at(0));
        assert_eq!(history.at("d", at(9)), Some(None));
        assert_eq!(history.at("d", at(10)), Some(Some(&"new")));
        assert_eq!(history.at("d", at(25)), Some(Some(&"newer")));
        assert_eq!(history.at("e", at(25)), None);
    }

    #[test]
    fn what_lies_behind_the_horizon_is_forgotten() {
        let mut history = History::default();
        for second in 1..100 {
            history.note("d", None, Some(&second), at(second), at(second - 5));
        }
        assert!(history.versions["d"].len() < 10);
    }
}
