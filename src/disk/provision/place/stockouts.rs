//! Recent stock-outs by zone and category, so that later creates skip the attempt.

use std::time::Duration;

use tokio::time::Instant;

use super::Candidate;
use super::refusal::Refusal;
use crate::disk::journal::Recent;
use crate::model::{Category, Gib, PerformanceLevel, ZoneId};

/// How long a stock-out is cached: stock changes within minutes.
const STOCKOUT_TTL: Duration = Duration::from_secs(180);

/// A category and performance level in a zone; without a category, the whole zone.
type Key = (Option<ZoneId>, Option<(Category, Option<PerformanceLevel>)>);

#[derive(Debug, Default)]
pub(super) struct StockoutCache(Recent<Key, Refused>);

#[derive(Debug, Clone)]
struct Refused {
    at: Instant,
    /// Applies to this size and larger ones.
    size: Gib,
    why: String,
}

fn keys(pair: &Candidate) -> [Key; 2] {
    let kind = (pair.category.clone(), pair.level);
    [(pair.zone.clone(), Some(kind)), (pair.zone.clone(), None)]
}

impl StockoutCache {
    /// Records a rejected pair with the cloud's message.
    pub(super) fn note(&self, pair: &Candidate, refusal: Refusal, why: &str) {
        let [of_pair, of_zone] = keys(pair);
        let (key, size) = match refusal {
            Refusal::Zone if pair.zone.is_some() => (of_zone, Gib(0)),
            Refusal::Zone | Refusal::Stock => (of_pair, Gib(0)),
            Refusal::Quota => (of_pair, pair.size),
            // These depend on the request, not on the stock.
            Refusal::Size | Refusal::Unfit => return,
        };
        let (at, why) = (Instant::now(), why.to_owned());
        self.0.note(&key, STOCKOUT_TTL, Refused { at, size, why });
    }

    /// Records that a disk of the pair was created, which removes earlier stock-outs.
    pub(super) fn record_success(&self, pair: &Candidate) {
        for key in keys(pair) {
            self.0.take(&key);
        }
    }

    pub(super) fn rejection_reason(&self, pair: &Candidate) -> Option<String> {
        let refused = keys(pair).into_iter().filter_map(|key| self.0.get(&key));
        let refused = refused.filter(|refused| pair.size >= refused.size);
        let mut reasons = refused
            .map(|refused| format!("{} ({} s ago)", refused.why, refused.at.elapsed().as_secs()));
        reasons.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(zone: &str, size: u32) -> Candidate {
        Candidate {
            zone: Some(zone.parse().unwrap()),
            category: Category::CloudSsd,
            level: None,
            size: Gib(size),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_forgotten_after_three_minutes_or_when_it_could_be_had() {
        let stockouts = StockoutCache::default();
        stockouts.note(&pair("a", 20), Refusal::Stock, "none");
        tokio::time::advance(STOCKOUT_TTL - Duration::from_secs(1)).await;
        assert_eq!(
            stockouts.rejection_reason(&pair("a", 1)).as_deref(),
            Some("none (179 s ago)")
        );
        assert_eq!(stockouts.rejection_reason(&pair("b", 20)), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(stockouts.rejection_reason(&pair("a", 20)), None);
        stockouts.note(&pair("a", 20), Refusal::Zone, "closed");
        stockouts.record_success(&pair("a", 20));
        assert_eq!(stockouts.rejection_reason(&pair("a", 20)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quota_stands_in_the_way_of_no_smaller_disk_and_a_wrong_size_of_none() {
        let stockouts = StockoutCache::default();
        stockouts.note(&pair("a", 100), Refusal::Quota, "full");
        assert_eq!(stockouts.rejection_reason(&pair("a", 99)), None);
        assert!(stockouts.rejection_reason(&pair("a", 100)).is_some());
        stockouts.note(&pair("b", 100), Refusal::Size, "odd");
        assert_eq!(stockouts.rejection_reason(&pair("b", 100)), None);
    }
}
