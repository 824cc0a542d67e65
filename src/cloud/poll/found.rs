//! What a description brought.

use std::fmt::Display;

use crate::cloud::action::{Page, Unreadable};

/// What one description says of the ids that it was asked for.
#[derive(Debug)]
pub(super) struct Found<K, V> {
    pub(super) rows: Vec<(K, V)>,
    /// Rows that make no sense, each with the action that brought it.
    pub(super) unreadable: Vec<(&'static str, Unreadable)>,
}

impl<K, V> Found<K, V> {
    pub(super) fn new(action: &'static str, page: Page<V>, key: impl Fn(&V) -> K) -> Self {
        let rows = page.rows.into_iter().map(|row| (key(&row), row));
        let unreadable = page.unreadable.into_iter().map(|row| (action, row));
        Self {
            rows: rows.collect(),
            unreadable: unreadable.collect(),
        }
    }

    /// The row that makes no sense and is about this id, or may be: then it is not "no row".
    pub(super) fn unreadable(&self, key: &impl Display) -> Option<&(&'static str, Unreadable)> {
        let key = key.to_string();
        let mut rows = self.unreadable.iter();
        rows.find(|(_, row)| row.id.as_ref().is_none_or(|id| *id == key))
    }
}
