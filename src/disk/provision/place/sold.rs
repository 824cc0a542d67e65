//! What was refused lately, so that the next creations need not find it out again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Candidate;
use super::refusal::Refusal;
use crate::model::{Category, Gib, PerformanceLevel, ZoneId};

/// How long a refusal is remembered: stock comes and goes within minutes.
const REMEMBERED: Duration = Duration::from_secs(180);

/// How many are; beyond that the one that ends first is forgotten.
const MOST: usize = 1000;

/// The refusals that are remembered.
#[derive(Debug, Default)]
pub(super) struct Sold(Mutex<HashMap<Shelf, Empty>>);

/// What was refused: one category at one level in one zone, or all of a zone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Shelf {
    zone: Option<ZoneId>,
    kind: Option<(Category, Option<PerformanceLevel>)>,
}

#[derive(Debug, Clone)]
struct Empty {
    since: Instant,
    /// From this size on.
    size: Gib,
    why: String,
}

impl Shelf {
    fn of(pair: &Candidate) -> Self {
        Self {
            zone: pair.zone.clone(),
            kind: Some((pair.category.clone(), pair.level)),
        }
    }

    fn zone_of(pair: &Candidate) -> Self {
        Self {
            zone: pair.zone.clone(),
            kind: None,
        }
    }
}

impl Sold {
    /// Remembers the refusal of a pair, in the words of the cloud.
    pub(super) fn note(&self, pair: &Candidate, refusal: Refusal, why: &str) {
        let (shelf, size) = match refusal {
            Refusal::Zone if pair.zone.is_some() => (Shelf::zone_of(pair), Gib(0)),
            Refusal::Zone | Refusal::Stock => (Shelf::of(pair), Gib(0)),
            Refusal::Quota => (Shelf::of(pair), pair.size),
            // They tell of the request, not of the shelf.
            Refusal::Size | Refusal::Unfit => return,
        };
        let mut shelves = self.lock();
        if shelves.len() >= MOST && !shelves.contains_key(&shelf) {
            shelves.retain(|_, empty| empty.since.elapsed() < REMEMBERED);
            let oldest = shelves.iter().min_by_key(|(_, empty)| empty.since);
            if shelves.len() >= MOST
                && let Some(oldest) = oldest.map(|(shelf, _)| shelf.clone())
            {
                shelves.remove(&oldest);
            }
        }
        let empty = Empty {
            since: Instant::now(),
            size,
            why: why.to_owned(),
        };
        shelves.insert(shelf, empty);
    }

    /// It could be had: nothing that was remembered of it is true any more.
    pub(super) fn had(&self, pair: &Candidate) {
        let mut shelves = self.lock();
        shelves.remove(&Shelf::of(pair));
        shelves.remove(&Shelf::zone_of(pair));
    }

    /// Why the pair was refused lately, and when; none when it was not.
    pub(super) fn why(&self, pair: &Candidate) -> Option<String> {
        let shelves = self.lock();
        let of = |shelf| {
            let empty: &Empty = shelves.get(&shelf)?;
            let age = empty.since.elapsed();
            (age < REMEMBERED && pair.size >= empty.size)
                .then(|| format!("{} ({} s ago)", empty.why, age.as_secs()))
        };
        of(Shelf::of(pair)).or_else(|| of(Shelf::zone_of(pair)))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Shelf, Empty>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_does_not_add_up() {
        let sold = Sold::default();
        for n in 0..MOST + 10 {
            sold.note(&pair(&format!("z{n}"), 20), Refusal::Stock, "none");
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(sold.lock().len(), MOST);
        assert_eq!(sold.why(&pair("z0", 20)), None);
        assert!(sold.why(&pair("z1009", 20)).is_some());
    }
}
