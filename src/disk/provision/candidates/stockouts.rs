//! Recent stock-outs by zone and category, so that later creates skip the attempt.

use std::time::Duration;

use tokio::time::Instant;

use super::Candidate;
use super::rejection::Rejection;
use crate::disk::journal::TtlCache;
use crate::model::{Category, Gib, PerformanceLevel, ZoneId};

/// How long a stock-out is cached: stock changes within minutes.
const TTL: Duration = Duration::from_secs(180);

/// A category and performance level in a zone; without a category, the whole zone.
type Key = (Option<ZoneId>, Option<(Category, Option<PerformanceLevel>)>);

#[derive(Debug, Default)]
pub(in crate::disk) struct StockoutCache(TtlCache<Key, Stockout>);

#[derive(Debug, Clone)]
struct Stockout {
    at: Instant,
    /// Applies to this size and larger ones.
    size: Gib,
    why: String,
}

fn keys(candidate: &Candidate) -> [Key; 2] {
    let (zone, category) = (candidate.zone.clone(), candidate.category.clone());
    [
        (zone.clone(), Some((category, candidate.level))),
        (zone, None),
    ]
}

impl StockoutCache {
    /// Records a rejected candidate with the cloud's message.
    pub(super) fn record(&self, candidate: &Candidate, rejection: Rejection, why: &str) {
        let [of_candidate, of_zone] = keys(candidate);
        let (key, size) = match rejection {
            Rejection::Zone if candidate.zone.is_some() => (of_zone, Gib(0)),
            Rejection::Zone | Rejection::Stock => (of_candidate, Gib(0)),
            Rejection::Quota => (of_candidate, candidate.size),
            // These depend on the request, not on the stock.
            Rejection::Size | Rejection::Incompatible => return,
        };
        let (at, why) = (Instant::now(), why.to_owned());
        self.0.insert(&key, TTL, Stockout { at, size, why });
    }

    /// Records that a disk of the candidate was created, which removes earlier stock-outs.
    pub(super) fn record_success(&self, candidate: &Candidate) {
        for key in keys(candidate) {
            self.0.remove(&key);
        }
    }

    /// The zones and categories with a recent stock-out; without a category, the whole zone.
    pub(in crate::disk) fn current(&self) -> Vec<(Option<ZoneId>, Option<Category>)> {
        let keys = self.0.keys().into_iter();
        let mut current: Vec<_> = keys
            .map(|(zone, kind)| (zone, kind.map(|(category, _)| category)))
            .collect();
        current.sort();
        current.dedup();
        current
    }

    pub(super) fn reason(&self, candidate: &Candidate) -> Option<String> {
        let [of_candidate, of_zone] = keys(candidate).map(|key| self.0.get(&key));
        let applies = |stockout: &Stockout| candidate.size >= stockout.size;
        let stockout = of_candidate.filter(applies).or(of_zone.filter(applies))?;
        let seconds = stockout.at.elapsed().as_secs();
        Some(format!("{} ({seconds} s ago)", stockout.why))
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
        stockouts.record(&candidate("a", 20), Rejection::Stock, "none");
        tokio::time::advance(TTL - Duration::from_secs(1)).await;
        assert_eq!(
            stockouts.reason(&candidate("a", 1)).as_deref(),
            Some("none (179 s ago)")
        );
        assert_eq!(stockouts.reason(&candidate("b", 20)), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(stockouts.reason(&candidate("a", 20)), None);
        stockouts.record(&candidate("a", 20), Rejection::Zone, "closed");
        stockouts.record_success(&candidate("a", 20));
        assert_eq!(stockouts.reason(&candidate("a", 20)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn quota_excludes_only_larger_disks_and_size_is_not_recorded() {
        let stockouts = StockoutCache::default();
        stockouts.record(&candidate("a", 100), Rejection::Quota, "full");
        assert_eq!(stockouts.reason(&candidate("a", 99)), None);
        assert!(stockouts.reason(&candidate("a", 100)).is_some());
        stockouts.record(&candidate("b", 100), Rejection::Size, "odd");
        assert_eq!(stockouts.reason(&candidate("b", 100)), None);
    }
}
