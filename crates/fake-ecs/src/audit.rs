//! Totals over all calls: resources created twice under one name, calls per minute, and throttled
//! calls. They are counted as calls arrive, so that they include calls that the log has dropped.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

const MINUTE_MS: i64 = 60_000;

/// Totals of all calls since the start or since the log was cleared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Audit {
    /// The resources created under each name, by action and name. Calls without a name are not counted.
    pub created: Vec<CreatedResources>,
    /// The calls of each action in each minute of the cloud's clock that had any, in time order.
    pub minutes: Vec<Minute>,
}

/// The resources that one action created under one name. A repeated call that returns the result of
/// its `ClientToken` creates none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CreatedResources {
    /// `CreateDisk` or another create action.
    pub action: String,
    /// The name in the request (`DiskName`, `SnapshotName`).
    pub name: String,
    /// The IDs of all resources created under the name, oldest first, including deleted ones.
    pub ids: Vec<String>,
    /// The maximum number of these resources that existed at the same time. More than one is a duplicate.
    pub max_concurrent: usize,
}

/// The calls of one action in one minute of the cloud's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Minute {
    /// The start of the minute.
    pub begin: Timestamp,
    pub action: String,
    pub calls: u64,
    /// Calls that failed with an error code that starts with `Throttling`.
    pub throttled: u64,
    /// Calls that arrived after the first throttled one. An exhausted window rejects every call in
    /// the same way, so a well-behaved client sends at most one, as a probe.
    pub after_throttling: u64,
}

impl Audit {
    /// The names under which more than one resource existed at the same time.
    #[must_use]
    pub fn duplicates(&self) -> Vec<&CreatedResources> {
        self.created
            .iter()
            .filter(|created| created.max_concurrent > 1)
            .collect()
    }

    /// The maximum number of calls of an action in one minute of the cloud's clock.
    #[must_use]
    pub fn max_per_minute(&self, action: &str) -> u64 {
        let of = self.minutes.iter().filter(|m| m.action == action);
        of.map(|minute| minute.calls).max().unwrap_or(0)
    }

    /// The minutes in which more than `most` calls of an action were throttled.
    #[must_use]
    pub fn throttled_more_than(&self, most: u64) -> Vec<&Minute> {
        let minutes = self.minutes.iter();
        minutes.filter(|minute| minute.throttled > most).collect()
    }

    /// The minutes in which an action was called more than `most` times after throttling had
    /// started. A single probe is `1`.
    #[must_use]
    pub fn called_after_throttling_more_than(&self, most: u64) -> Vec<&Minute> {
        let minutes = self.minutes.iter();
        minutes.filter(|minute| minute.after_throttling > most).collect()
    }
}

/// The counters behind an [`Audit`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(super) created: BTreeMap<(String, String), NameTally>,
    minutes: BTreeMap<(i64, String), Meter>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct NameTally {
    pub(super) ids: Vec<String>,
    pub(super) max_concurrent: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Meter {
    calls: u64,
    throttled: u64,
    after_throttling: u64,
}

fn minute(at: Timestamp) -> i64 {
    at.as_millisecond().div_euclid(MINUTE_MS)
}

impl Tally {
    pub(crate) fn call(&mut self, at: Timestamp, action: &str) {
        let meter = self.minutes.entry((minute(at), action.to_owned()));
        let meter = meter.or_default();
        meter.calls += 1;
        if meter.throttled > 0 {
            meter.after_throttling += 1;
        }
    }

    /// Counts a failed call in the minute in which it arrived.
    pub(crate) fn error(&mut self, at: Timestamp, action: &str, code: &str) {
        if code.starts_with("Throttling") {
            let meter = self.minutes.entry((minute(at), action.to_owned()));
            meter.or_default().throttled += 1;
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn audit(&self) -> Audit {
        let created = self.created.iter().map(|((action, name), created)| CreatedResources {
            action: action.clone(),
            name: name.clone(),
            ids: created.ids.clone(),
            max_concurrent: created.max_concurrent,
        });
        let minutes = self.minutes.iter().map(|((minute, action), meter)| Minute {
            begin: Timestamp::from_millisecond(minute * MINUTE_MS).unwrap_or(Timestamp::MAX),
            action: action.clone(),
            calls: meter.calls,
            throttled: meter.throttled,
            after_throttling: meter.after_throttling,
        });
        Audit {
            created: created.collect(),
            minutes: minutes.collect(),
        }
    }
}
