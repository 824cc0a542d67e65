//! The cursors of the pages that follow.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// The cursors of the valid tokens.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pub(super) cursors: BTreeMap<String, Cursor>,
}

#[derive(Debug)]
pub(super) struct Cursor {
    /// The next page starts after this ID, whatever was added or removed meanwhile.
    pub(super) last: String,
    /// The number of rows on the earlier pages.
    pub(super) returned: usize,
    /// A token is valid only for the query that returned it.
    pub(super) query: String,
    pub(super) expires: Timestamp,
}
