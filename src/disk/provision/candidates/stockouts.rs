//! Pairs of zone and category that are out of stock, shared by all calls.
//!
//! The rule: a pair is out of stock from the rejection of a creation until one succeeds, or is denied because of
//! the permissions of the account. Meanwhile one attempt is made every [`PROBE_INTERVAL`], by whichever call comes
//! first; other calls get the last rejection without a request.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use ecs::{Condition, Error, Kind};
use tokio::time::Instant;

use super::Candidate;
use crate::base::lock;
use crate::model::{Category, Gib, PerformanceLevel, ZoneId};

const PROBE_INTERVAL: Duration = Duration::from_secs(30);
/// How long a rejection is reported as a stock-out: stock changes within minutes.
const RECENT: Duration = Duration::from_secs(180);
/// How long a pair without attempts stays out of stock: longer than the maximum pause between retries of the
/// provisioner.
const MEMORY: Duration = Duration::from_secs(900);

#[derive(Debug, Default)]
pub(in crate::disk) struct Stockouts(Mutex<BTreeMap<Scope, Stockout>>);

/// The zone is `None` for a regional category.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Zone(Option<ZoneId>),
    Pair(Option<ZoneId>, Category, Option<PerformanceLevel>),
    /// The pair from a size on, because of the quota of the account.
    Quota(Option<ZoneId>, Category, Option<PerformanceLevel>),
}

#[derive(Debug)]
struct Stockout {
    why: String,
    at: Instant,
    /// Applies to this size and larger ones.
    size: Gib,
    next_probe: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejection {
    /// All categories in the zone.
    Zone,
    /// The candidate at any size: it is out of stock.
    Stock,
    /// This size and larger ones: the account's quota is exceeded.
    Quota,
    /// This size or IOPS, which the cloud does not support.
    Size,
    /// This request: the category is incompatible with another option, such as multi-attach or encryption.
    Incompatible,
}

impl Rejection {
    /// `None` if the error would apply to every other candidate too, or is not a decision.
    pub(super) fn from_error(error: &Error) -> Option<Self> {
        use Condition::{CategoryDenied, EncryptionUnsupported, IncompatibleOptions};
        match (error.condition(), error.kind()) {
            (Condition::ZoneClosed, _) => Some(Self::Zone),
            (Condition::AccountQuota, _) => Some(Self::Quota),
            (IncompatibleOptions | CategoryDenied | EncryptionUnsupported, _) => Some(Self::Incompatible),
            (_, Kind::OutOfStock) => Some(Self::Stock),
            (_, Kind::OutOfRange) => Some(Self::Size),
            _ => None,
        }
    }
}

impl Scope {
    fn all(candidate: &Candidate) -> [Self; 3] {
        let (zone, category) = (candidate.zone.clone(), candidate.category.clone());
        [
            Self::Pair(zone.clone(), category.clone(), candidate.level),
            Self::Quota(zone.clone(), category, candidate.level),
            Self::Zone(zone),
        ]
    }
}

impl Stockouts {
    /// Records the response to an attempt: the rejection with the cloud's message, or success.
    pub(super) fn record(&self, candidate: &Candidate, rejected: Option<(Rejection, &str)>) {
        let [pair, quota, zone] = Scope::all(candidate);
        let mut stockouts = lock(&self.0);
        let Some((rejection, why)) = rejected else {
            for scope in [pair, quota, zone] {
                stockouts.retain(|other, out| *other != scope || candidate.size < out.size);
            }
            return;
        };
        let (scope, size) = match rejection {
            Rejection::Zone if candidate.zone.is_some() => (zone, Gib(0)),
            Rejection::Zone | Rejection::Stock => (pair, Gib(0)),
            Rejection::Quota => {
                let earlier = stockouts.get(&quota).map_or(candidate.size, |out| out.size);
                (quota, candidate.size.min(earlier))
            }
            // These depend on the request, not on the stock.
            Rejection::Size | Rejection::Incompatible => return,
        };
        if !matches!(scope, Scope::Zone(_)) {
            stockouts.remove(&Scope::Zone(candidate.zone.clone()));
        }
        stockouts.retain(|_, out| out.at.elapsed() < MEMORY);
        let at = Instant::now();
        let out = Stockout {
            why: why.to_owned(),
            at,
            size,
            next_probe: at + PROBE_INTERVAL,
        };
        stockouts.insert(scope, out);
    }

    /// Whether the candidate is not known to be out of stock, or this call probes it.
    pub(super) fn begin_attempt(&self, candidate: &Candidate) -> bool {
        if !self.is_due(candidate) {
            return false;
        }
        let next_probe = Instant::now() + PROBE_INTERVAL;
        let mut stockouts = lock(&self.0);
        for scope in Scope::all(candidate) {
            let out = stockouts.get_mut(&scope);
            if let Some(out) = out.filter(|out| candidate.size >= out.size) {
                out.next_probe = next_probe;
            }
        }
        true
    }

    pub(super) fn is_due(&self, candidate: &Candidate) -> bool {
        let due = self.with(candidate, |out| out.next_probe).max();
        due.is_none_or(|due| due <= Instant::now())
    }

    pub(super) fn is_recent(&self, candidate: &Candidate) -> bool {
        self.with(candidate, |out| out.at.elapsed()).any(|age| age < RECENT)
    }

    pub(super) fn reason(&self, candidate: &Candidate) -> Option<String> {
        let mut reasons = self.with(candidate, |out| {
            let next = out.next_probe.saturating_duration_since(Instant::now());
            let (ago, next) = (out.at.elapsed().as_secs(), next.as_secs());
            format!("{} ({ago} s ago; the next attempt is due in {next} s)", out.why)
        });
        reasons.next()
    }

    /// The zones and categories that were rejected recently; without a category, the whole zone.
    pub(in crate::disk) fn current(&self) -> Vec<(Option<ZoneId>, Option<Category>)> {
        let stockouts = lock(&self.0);
        let recent = stockouts.iter().filter(|(_, out)| out.at.elapsed() < RECENT);
        let mut current: Vec<_> = recent
            .map(|(scope, _)| match scope.clone() {
                Scope::Zone(zone) => (zone, None),
                Scope::Pair(zone, category, _) | Scope::Quota(zone, category, _) => (zone, Some(category)),
            })
            .collect();
        current.sort();
        current.dedup();
        current
    }

    fn with<T>(&self, candidate: &Candidate, read: impl Fn(&Stockout) -> T) -> impl Iterator<Item = T> {
        let stockouts = lock(&self.0);
        let applies = |out: &&Stockout| candidate.size >= out.size && out.at.elapsed() < MEMORY;
        let found = Scope::all(candidate).map(|scope| stockouts.get(&scope).filter(applies).map(&read));
        found.into_iter().flatten()
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

    async fn seconds(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn one_attempt_per_interval_probes_a_pair_until_it_succeeds() {
        let stockouts = Stockouts::default();
        let pair = candidate("a", 20);
        assert!((0..50).all(|_| stockouts.begin_attempt(&pair)));
        stockouts.record(&pair, Some((Rejection::Stock, "none")));
        let mut attempts = 0;
        for _ in 0..90 {
            seconds(1).await;
            attempts += (0..50).filter(|_| stockouts.begin_attempt(&pair)).count();
            assert!(stockouts.begin_attempt(&candidate("b", 20)));
        }
        // Also if a probe has no outcome.
        assert_eq!(attempts, 3);
        stockouts.record(&pair, None);
        assert!((0..50).all(|_| stockouts.begin_attempt(&pair)));
        assert!(stockouts.current().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reason_has_the_rejection_its_age_and_the_time_of_the_next_attempt() {
        let stockouts = Stockouts::default();
        stockouts.record(&candidate("a", 20), Some((Rejection::Stock, "none")));
        seconds(5).await;
        assert_eq!(
            stockouts.reason(&candidate("a", 1)).as_deref(),
            Some("none (5 s ago; the next attempt is due in 25 s)")
        );
        assert_eq!(stockouts.reason(&candidate("b", 20)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejection_is_reported_for_minutes_and_remembered_longer() {
        let stockouts = Stockouts::default();
        let pair = candidate("a", 20);
        stockouts.record(&pair, Some((Rejection::Stock, "none")));
        seconds(300).await;
        assert!(!stockouts.is_recent(&pair));
        assert!(stockouts.current().is_empty());
        // Of claims that are retried every five minutes, only one attempts the pair.
        assert!(stockouts.begin_attempt(&pair));
        assert!(!stockouts.begin_attempt(&pair));
        seconds(601).await;
        assert!((0..2).all(|_| stockouts.begin_attempt(&pair)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_quota_excludes_only_larger_disks_and_a_size_is_not_recorded() {
        let stockouts = Stockouts::default();
        stockouts.record(&candidate("a", 100), Some((Rejection::Quota, "full")));
        assert!(stockouts.begin_attempt(&candidate("a", 99)));
        assert!(!stockouts.begin_attempt(&candidate("a", 100)));
        // Neither a smaller disk nor the rejection of a larger one shows that this one can be created.
        stockouts.record(&candidate("a", 99), None);
        stockouts.record(&candidate("a", 500), Some((Rejection::Quota, "full")));
        assert!(!stockouts.begin_attempt(&candidate("a", 100)));
        stockouts.record(&candidate("b", 100), Some((Rejection::Size, "odd")));
        assert_eq!(stockouts.reason(&candidate("b", 100)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_zone_is_open_once_a_category_of_it_has_an_answer() {
        let stockouts = Stockouts::default();
        let essd = Candidate {
            category: Category::CloudEssd,
            ..candidate("a", 20)
        };
        stockouts.record(&candidate("a", 20), Some((Rejection::Zone, "closed")));
        assert!(!stockouts.begin_attempt(&essd));
        seconds(30).await;
        assert!(stockouts.begin_attempt(&essd));
        assert!(!stockouts.begin_attempt(&candidate("a", 20)));
        stockouts.record(&essd, Some((Rejection::Stock, "none")));
        assert!(stockouts.begin_attempt(&candidate("a", 20)));
        assert!(!stockouts.begin_attempt(&essd));
    }

    #[test]
    fn only_rejections_of_the_candidate_have_a_scope() {
        for (code, scope) in [
            ("Zone.NotOnSale", Some(Rejection::Zone)),
            ("OperationDenied.NoStock", Some(Rejection::Stock)),
            ("InvalidDataDiskCategory.NotSupported", Some(Rejection::Stock)),
            ("InvalidDiskCategory.NotSupported", Some(Rejection::Stock)),
            ("InvalidPerformanceLevel.ValueNotSupported", Some(Rejection::Stock)),
            ("QuotaExceed.DiskCapacity", Some(Rejection::Quota)),
            ("QuotaExceeded.PostpaidDataDiskCapacity", Some(Rejection::Quota)),
            ("InvalidDiskSize.NotSupported", Some(Rejection::Size)),
            (
                "OperationDenied.ZoneNotSupportMultiAttachDisk",
                Some(Rejection::Incompatible),
            ),
            ("QuotaExceed.Tags", None),
            ("InvalidAccountStatus.NotEnoughBalance", None),
            ("IdempotentParameterMismatch", None),
            ("InternalError", None),
            ("Forbidden.RAM", None),
            ("InvalidParameter.KMSKeyId.CMKNotEnabled", None),
        ] {
            assert_eq!(
                Rejection::from_error(&Error::from_response("CreateDisk", 403, code)),
                scope,
                "{code}"
            );
        }
    }
}
