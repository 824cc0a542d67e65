//! Reverse index of references between rows.

use std::collections::{BTreeMap, BTreeSet};

/// The IDs that refer to an ID.
#[derive(Debug, Default)]
pub(crate) struct Index(BTreeMap<String, BTreeSet<String>>);

impl Index {
    pub(crate) fn add(&mut self, to: &str, from: &str) {
        self.0.entry(to.to_owned()).or_default().insert(from.to_owned());
    }

    pub(crate) fn remove(&mut self, to: &str, from: &str) {
        if let Some(ids) = self.0.get_mut(to) {
            ids.remove(from);
            if ids.is_empty() {
                self.0.remove(to);
            }
        }
    }

    pub(crate) fn of(&self, to: &str) -> impl Iterator<Item = &String> {
        self.0.get(to).into_iter().flatten()
    }
}
