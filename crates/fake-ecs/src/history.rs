//! Earlier versions of rows, which stale reads return.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use super::distribution::before;

/// The versions of rows by ID, each with the time from which it applies.
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

/// The time of a change, and how long the version before it is kept for stale reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retention {
    pub(crate) now: Timestamp,
    pub(crate) memory: Duration,
}

impl<T: Clone> History<T> {
    /// Records a change and drops the versions that no read returns any more.
    pub(crate) fn record(&mut self, id: &str, old: Option<&T>, new: Option<&T>, Retention { now, memory }: Retention) {
        if memory.is_zero() {
            self.versions.clear();
            return;
        }
        let horizon = before(now, memory);
        let versions = self.versions.entry(id.to_owned()).or_default();
        if versions.is_empty() {
            versions.push_back((Timestamp::MIN, old.cloned()));
        }
        versions.push_back((now, new.cloned()));
        while versions.get(1).is_some_and(|(from, _)| *from <= horizon) {
            versions.pop_front();
        }
    }

    /// The row at a time: none if no version is recorded, `Some(None)` if the row did not exist.
    pub(crate) fn at(&self, id: &str, time: Timestamp) -> Option<Option<&T>> {
        let versions = self.versions.get(id)?;
        let version = versions.iter().rev().find(|(from, _)| *from <= time)?;
        Some(version.1.as_ref())
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &String> {
        self.versions.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_with_memory(second: i64, memory: u64) -> Retention {
        Retention {
            now: at(second),
            memory: Duration::from_secs(memory),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_read_returns_the_row_of_its_time() {
        let mut history = History::default();
        history.record("d", None, Some(&"new"), at_with_memory(10, 60));
        history.record("d", Some(&"new"), Some(&"newer"), at_with_memory(20, 60));
        assert_eq!(history.at("d", at(9)), Some(None));
        assert_eq!(history.at("d", at(10)), Some(Some(&"new")));
        assert_eq!(history.at("d", at(25)), Some(Some(&"newer")));
        assert_eq!(history.at("e", at(25)), None);
    }

    #[test]
    fn versions_beyond_the_retention_are_dropped() {
        let mut history = History::default();
        for second in 1..100 {
            history.record("d", None, Some(&second), at_with_memory(second, 5));
        }
        assert!(history.versions["d"].len() < 10);
    }
}
