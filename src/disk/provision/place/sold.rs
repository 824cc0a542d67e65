//! Recent refusals by zone and category, so that the next creations need not repeat the attempt.

use std::time::Duration;

use tokio::time::Instant;

use super::Candidate;
use super::refusal::Refusal;
use crate::disk::journal::Recent;
use crate::model::{Category, Gib, PerformanceLevel, ZoneId};

/// How long a refusal is remembered: stock comes and goes within minutes.
const REMEMBERED: Duration = Duration::from_secs(180);

/// One category at one level in one zone, or without a category all of the zone.
type Key = (Option<ZoneId>, Option<(Category, Option<PerformanceLevel>)>);

#[derive(Debug, Default)]
pub(super) struct Sold(Recent<Key, Refused>);

#[derive(Debug, Clone)]
struct Refused {
    at: Instant,
    /// From this size on.
    size: Gib,
    why: String,
}

fn keys(pair: &Candidate) -> [Key; 2] {
    let kind = (pair.category.clone(), pair.level);
    [(pair.zone.clone(), Some(kind)), (pair.zone.clone(), None)]
}

impl Sold {
    /// Remembers the refusal of a pair, in the words of the cloud.
    pub(super) fn note(&self, pair: &Candidate, refusal: Refusal, why: &str) {
        let [of_pair, of_zone] = keys(pair);
        let (key, size) = match refusal {
            Refusal::Zone if pair.zone.is_some() => (of_zone, Gib(0)),
            Refusal::Zone | Refusal::Stock => (of_pair, Gib(0)),
            Refusal::Quota => (of_pair, pair.size),
            // They depend on the request, not on the stock.
            Refusal::Size | Refusal::Unfit => return,
        };
        let (at, why) = (Instant::now(), why.to_owned());
        self.0.note(&key, REMEMBERED, Refused { at, size, why });
    }

    /// A disk of the pair was created, which contradicts earlier refusals.
    pub(super) fn had(&self, pair: &Candidate) {
        for key in keys(pair) {
            self.0.take(&key);
        }
    }

    pub(super) fn why(&self, pair: &Candidate) -> Option<String> {
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
        let sold = Sold::default();
        sold.note(&pair("a", 20), Refusal::Stock, "none");
        tokio::time::advance(REMEMBERED - Duration::from_secs(1)).await;
        assert_eq!(sold.why(&pair("a", 1)).as_deref(), Some("none (179 s ago)"));
        assert_eq!(sold.why(&pair("b", 20)), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(sold.why(&pair("a", 20)), None);
        sold.note(&pair("a", 20), Refusal::Zone, "closed");
        sold.had(&pair("a", 20));
        assert_eq!(sold.why(&pair("a", 20)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quota_stands_in_the_way_of_no_smaller_disk_and_a_wrong_size_of_none() {
        let sold = Sold::default();
        sold.note(&pair("a", 100), Refusal::Quota, "full");
        assert_eq!(sold.why(&pair("a", 99)), None);
        assert!(sold.why(&pair("a", 100)).is_some());
        sold.note(&pair("b", 100), Refusal::Size, "odd");
        assert_eq!(sold.why(&pair("b", 100)), None);
    }
}
