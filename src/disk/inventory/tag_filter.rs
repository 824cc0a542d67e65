//! Decides whether listings are filtered by tags.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::disk::owned::MAX_FILTERED_ROWS;
use crate::model::Tags;

/// Whether the last listing exceeded the limit of lists filtered by tags, so that the next one omits the filter.
#[derive(Debug, Default)]
pub(super) struct TagFilter(AtomicBool);

impl TagFilter {
    pub(super) fn tags(&self, own: Tags) -> Tags {
        if self.0.load(Ordering::Relaxed) {
            Tags::new()
        } else {
            own
        }
    }

    /// Records the number of owned rows. True if a list filtered by tags is truncated and must be repeated without a
    /// filter.
    pub(super) fn is_truncated(&self, filter: &Tags, rows: usize) -> bool {
        let large = rows >= MAX_FILTERED_ROWS;
        if self.0.swap(large, Ordering::Relaxed) != large {
            let with = if large { "without" } else { "with" };
            tracing::info!(rows, "listings now run {with} the filter by tags");
        }
        large && !filter.is_empty()
    }
}
