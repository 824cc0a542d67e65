//! Rows by ID, with their earlier versions.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::history::{History, Retention};

#[derive(Debug)]
pub(crate) struct Table<T> {
    rows: BTreeMap<String, T>,
    pub(crate) history: History<T>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            rows: BTreeMap::new(),
            history: History::default(),
        }
    }
}

impl<T: Clone> Table<T> {
    pub(crate) fn get(&self, id: &str) -> Option<&T> {
        self.rows.get(id)
    }

    pub(crate) fn rows(&self) -> &BTreeMap<String, T> {
        &self.rows
    }

    /// The IDs that a list at `time` can contain.
    pub(crate) fn ids_as_of(&self, time: Option<Timestamp>) -> BTreeSet<String> {
        let mut ids: BTreeSet<String> = self.rows.keys().cloned().collect();
        if time.is_some() {
            ids.extend(self.history.ids().cloned());
        }
        ids
    }

    /// The row as a read at `time` returns it.
    pub(crate) fn as_of(&self, id: &str, time: Option<Timestamp>) -> Option<&T> {
        match time.and_then(|time| self.history.at(id, time)) {
            Some(old) => old,
            None => self.get(id),
        }
    }

    /// Changes a row if it exists.
    pub(crate) fn change(&mut self, retention: Retention, id: &str, change: impl FnOnce(&mut T)) {
        let Some(row) = self.rows.get_mut(id) else {
            return;
        };
        let old = row.clone();
        change(row);
        self.history.record(id, Some(&old), Some(row), retention);
    }

    pub(super) fn insert(&mut self, retention: Retention, id: String, row: T) {
        self.history.record(&id, None, Some(&row), retention);
        self.rows.insert(id, row);
    }

    pub(super) fn remove(&mut self, retention: Retention, id: &str) -> Option<T> {
        let old = self.rows.remove(id)?;
        self.history.record(id, Some(&old), None, retention);
        Some(old)
    }
}
