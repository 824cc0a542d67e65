//! What the calls add up to: who made what twice, how many calls a minute there were, and how many
//! of them the cloud turned away. Kept as calls come in, so that nothing is lost with the log's
//! older entries.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::reply::{Answer, Reply};
use super::world::World;

const MINUTE_MS: i64 = 60_000;

/// What all calls since the start, or since they were last forgotten, add up to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Audit {
    /// What was made under each name, by action and name. Calls without a name are not counted.
    pub made: Vec<Made>,
    /// The calls of each action in each minute of the cloud's clock that had any, by time.
    pub minutes: Vec<Minute>,
}

/// What one action made under one name. A repeat of a call that is answered by its `ClientToken`
/// makes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Made {
    /// `CreateDisk` or another action that makes something.
    pub action: String,
    /// The name that the caller gave (`DiskName`, `SnapshotName`).
    pub name: String,
    /// All that was made under it, the oldest first; also what is gone again.
    pub ids: Vec<String>,
    /// How many of these there were at most at the same time. More than one is a double.
    pub at_once: usize,
}

/// The calls of one action in one minute of the cloud's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Minute {
    /// Its begin.
    pub begin: Timestamp,
    /// The action.
    pub action: String,
    /// All calls.
    pub calls: u64,
    /// Those that were answered by an error whose code begins with `Throttling`.
    pub throttled: u64,
    /// Those that came in after one had been answered so. A window that is spent answers all of
    /// them in the same way: a client that obeys makes one such call at most, to see whether it
    /// is over.
    pub defiant: u64,
}

impl Audit {
    /// Names under which more than one thing was there at the same time.
    #[must_use]
    pub fn doubles(&self) -> Vec<&Made> {
        self.made.iter().filter(|made| made.at_once > 1).collect()
    }

    /// Most calls of an action in one minute of the cloud's clock.
    #[must_use]
    pub fn most_a_minute(&self, action: &str) -> u64 {
        let of = self.minutes.iter().filter(|m| m.action == action);
        of.map(|minute| minute.calls).max().unwrap_or(0)
    }

    /// Minutes in which an action was answered by throttling more than so many times.
    #[must_use]
    pub fn throttled_more_than(&self, most: u64) -> Vec<&Minute> {
        let minutes = self.minutes.iter();
        minutes.filter(|minute| minute.throttled > most).collect()
    }

    /// Minutes in which an action was called more than so many times after throttling had set in.
    /// A single probe is `1`.
    #[must_use]
    pub fn defied_more_than(&self, most: u64) -> Vec<&Minute> {
        let minutes = self.minutes.iter();
        minutes.filter(|minute| minute.defiant > most).collect()
    }
}

/// The tallies behind an [`Audit`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    made: BTreeMap<(String, String), Makings>,
    minutes: BTreeMap<(i64, String), Meter>,
}

#[derive(Debug, Clone, Default)]
struct Makings {
    ids: Vec<String>,
    at_once: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Meter {
    calls: u64,
    throttled: u64,
    defiant: u64,
}

fn minute(at: Timestamp) -> i64 {
    at.as_millisecond().div_euclid(MINUTE_MS)
}

impl Tally {
    /// Counts a call that has come in.
    pub(crate) fn call(&mut self, at: Timestamp, action: &str) {
        let meter = self.minutes.entry((minute(at), action.to_owned()));
        let meter = meter.or_default();
        meter.calls += 1;
        if meter.throttled > 0 {
            meter.defiant += 1;
        }
    }

    /// Counts a refusal for the minute in which its call came in.
    pub(crate) fn refusal(&mut self, at: Timestamp, action: &str, code: &str) {
        if code.starts_with("Throttling") {
            let meter = self.minutes.entry((minute(at), action.to_owned()));
            meter.or_default().throttled += 1;
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn audit(&self) -> Audit {
        let made = self.made.iter().map(|((action, name), made)| Made {
            action: action.clone(),
            name: name.clone(),
            ids: made.ids.clone(),
            at_once: made.at_once,
        });
        let minutes = self.minutes.iter().map(|((minute, action), meter)| Minute {
            begin: Timestamp::from_millisecond(minute * MINUTE_MS).unwrap_or(Timestamp::MAX),
            action: action.clone(),
            calls: meter.calls,
            throttled: meter.throttled,
            defiant: meter.defiant,
        });
        Audit {
            made: made.collect(),
            minutes: minutes.collect(),
        }
    }
}

impl World {
    /// Notes what a call has made, which is told even when its answer will be lost. Returns the id
    /// when it is new: a repeat gets the id of what is there already.
    pub(crate) fn note_made(
        &mut self,
        action: &str,
        name: Option<&str>,
        reply: &Reply,
    ) -> Option<String> {
        let (Ok(Answer::Disk(id)) | Ok(Answer::Snapshot(id))) = reply else {
            return None;
        };
        if self.tokens.repeated {
            return None;
        }
        if let Some(name) = name {
            let key = (action.to_owned(), name.to_owned());
            let mut makings = self.log.tally.made.remove(&key).unwrap_or_default();
            makings.ids.push(id.clone());
            let there = |id: &&String| self.disk(id).is_some() || self.snapshot(id).is_some();
            let at_once = makings.ids.iter().filter(there).count();
            makings.at_once = makings.at_once.max(at_once);
            self.log.tally.made.insert(key, makings);
        }
        Some(id.clone())
    }
}
