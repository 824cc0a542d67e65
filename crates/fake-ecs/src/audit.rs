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
}

/// The counters behind an [`Audit`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// By action and name.
    pub(super) created: BTreeMap<(String, String), CreatedResources>,
    minutes: BTreeMap<(Timestamp, String), Minute>,
}

impl Tally {
    fn minute(&mut self, at: Timestamp, action: &str) -> &mut Minute {
        let minute = at.as_millisecond().div_euclid(MINUTE_MS) * MINUTE_MS;
        let begin = Timestamp::from_millisecond(minute).unwrap_or(Timestamp::MIN);
        let new = || Minute {
            begin,
            action: action.to_owned(),
            calls: 0,
            throttled: 0,
            after_throttling: 0,
        };
        self.minutes.entry((begin, action.to_owned())).or_insert_with(new)
    }

    pub(crate) fn call(&mut self, at: Timestamp, action: &str) {
        let minute = self.minute(at, action);
        minute.calls += 1;
        minute.after_throttling += u64::from(minute.throttled > 0);
    }

    /// Counts a failed call in the minute in which it arrived.
    pub(crate) fn error(&mut self, at: Timestamp, action: &str, code: &str) {
        if code.starts_with("Throttling") {
            self.minute(at, action).throttled += 1;
        }
    }

    pub(crate) fn audit(&self) -> Audit {
        Audit {
            created: self.created.values().cloned().collect(),
            minutes: self.minutes.values().cloned().collect(),
        }
    }
}
