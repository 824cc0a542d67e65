//! Recent stock-outs by zone and category, so that later creates skip the attempt.

use std::time::Duration;

use tokio::time::Instant;

use super::Candidate;
use super::rejection::RejectionScope;
use crate::disk::journal::TtlCache;
use crate::model::{Category, Gib, PerformanceLevel, ZoneId};

/// How long a stock-out is cached: stock changes within minutes.
const STOCKOUT_TTL: Duration = Duration::from_secs(180);

/// A category and performance level in a zone; without a category, the whole zone.
type Key = (Option<ZoneId>, Option<(Category, Option<PerformanceLevel>)>);

#[derive(Debug, Default)]
pub(super) struct StockoutCache(TtlCache<Key, Stockout>);

#[derive(Debug, Clone)]
struct Stockout {
    at: Instant,
    /// Applies to this size and larger ones.
    size: Gib,
    why: String,
}

fn keys(candidate: &Candidate) -> [Key; 2] {
    let kind = (candidate.category.clone(), candidate.level);
    [
        (candidate.zone.clone(), Some(kind)),
        (candidate.zone.clone(), None),
    ]
}

impl StockoutCache {
    /// Records a rejected candidate with the cloud's message.
    pub(super) fn record(&self, candidate: &Candidate, rejection: RejectionScope, why: &str) {
        let [of_candidate, of_zone] = keys(candidate);
        let (key, size) = match rejection {
            RejectionScope::Zone if candidate.zone.is_some() => (of_zone, Gib(0)),
            RejectionScope::Zone | RejectionScope::Stock => (of_candidate, Gib(0)),
            RejectionScope::Quota => (of_candidate, candidate.size),
            // These depend on the request, not on the stock.
            RejectionScope::Size | RejectionScope::Incompatible => return,
        };
        let (at, why) = (Instant::now(), why.to_owned());
        self.0
            .insert(&key, STOCKOUT_TTL, Stockout { at, size, why });
    }

    /// Records that a disk of the candidate was created, which removes earlier stock-outs.
    pub(super) fn record_success(&self, candidate: &Candidate) {
        for key in keys(candidate) {
            self.0.remove(&key);
        }
    }

    pub(super) fn rejection_reason(&self, candidate: &Candidate) -> Option<String> {
        let rejected = keys(candidate)
            .into_iter()
            .filter_map(|key| self.0.get(&key));
        let rejected = rejected.filter(|rejected| candidate.size >= rejected.size);
        let mut reasons = rejected.map(|rejected| {
            format!(
                "{} ({} s ago)",
                rejected.why,
                rejected.at.elapsed().as_secs()
            )
        });
        reasons.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(zone: &str, size: u32) -> Candidate {
        Candidate {
            zone: Some(zone.parse().unwrap()),
            category: Category::CloudSsd,
            level: None,
            size: Gib(size),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn stockout_ends_after_its_ttl_or_a_successful_create() {
        let stockouts = StockoutCache::default();
        stockouts.record(&candidate("a", 20), RejectionScope::Stock, "none");
        tokio::time::advance(STOCKOUT_TTL - Duration::from_secs(1)).await;
        assert_eq!(
            stockouts.rejection_reason(&candidate("a", 1)).as_deref(),
            Some("none (179 s ago)")
        );
        assert_eq!(stockouts.rejection_reason(&candidate("b", 20)), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(stockouts.rejection_reason(&candidate("a", 20)), None);
        stockouts.record(&candidate("a", 20), RejectionScope::Zone, "closed");
        stockouts.record_success(&candidate("a", 20));
        assert_eq!(stockouts.rejection_reason(&candidate("a", 20)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn quota_excludes_only_larger_disks_and_size_is_not_recorded() {
        let stockouts = StockoutCache::default();
        stockouts.record(&candidate("a", 100), RejectionScope::Quota, "full");
        assert_eq!(stockouts.rejection_reason(&candidate("a", 99)), None);
        assert!(stockouts.rejection_reason(&candidate("a", 100)).is_some());
        stockouts.record(&candidate("b", 100), RejectionScope::Size, "odd");
        assert_eq!(stockouts.rejection_reason(&candidate("b", 100)), None);
    }
}
