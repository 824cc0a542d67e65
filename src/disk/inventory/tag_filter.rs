//! Whether listings are filtered by tags.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::disk::owned::MOST_BY_TAGS;
use crate::model::Tags;

/// Whether a listing has outgrown the filter by tags, so that it is not tried in vain each time.
#[derive(Debug, Default)]
pub(super) struct TruncatedFilter(AtomicBool);

impl TruncatedFilter {
    pub(super) fn filter(&self, own: Tags) -> Tags {
        if self.0.load(Ordering::Relaxed) {
            Tags::new()
        } else {
            own
        }
    }

    /// Whether what was read by this filter must be read once more, without one.
    pub(super) fn hides(&self, filter: &Tags, rows: usize) -> bool {
        let large = rows >= MOST_BY_TAGS;
        if self.0.swap(large, Ordering::Relaxed) != large {
            let way = if large { "without" } else { "with" };
            tracing::info!(
                rows,
                "listings are read {way} the filter by tags from now on"
            );
        }
        large && !filter.is_empty()
    }
}
