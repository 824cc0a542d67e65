//! The call log: what was asked, by whom signed, and what was decided. Never a key, a signature or
//! a security token.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use serde::Serialize;

use super::audit::Tally;

/// How a call came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// Through the face in memory.
    Memory,
    /// Over HTTP with signature V1.
    V1,
    /// Over HTTP with signature V3.
    V3,
    /// Over HTTP without a signature: a token is believed instead.
    Unsigned,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its number, from 1.
    pub seq: u64,
    /// When it came in, by the world's clock.
    pub at: Timestamp,
    /// The action, as the caller wrote it.
    pub action: String,
    /// Its parameters, without what belongs to the signature.
    pub params: BTreeMap<String, String>,
    /// How it came in.
    pub via: Via,
    /// The nonce of its signature.
    pub nonce: Option<String>,
    /// The status of the answer; none while it is being decided.
    pub status: Option<u16>,
    /// The code of a refusal.
    pub code: Option<String>,
    /// Whether the answer was lost or spoilt on purpose.
    pub spoilt: bool,
    /// The id of what the call made, also when its answer was lost or an error. None for a repeat,
    /// which is answered with the id of what is there already.
    pub made: Option<String>,
    /// The id of the request.
    pub request_id: String,
}

/// How often an action was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub struct Count {
    /// All calls.
    pub calls: u64,
    /// Those that were refused.
    pub refused: u64,
}

/// The last calls, and how many there were of each action.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallLog {
    entries: VecDeque<Entry>,
    /// When the calls that are being decided came in, and their actions: an entry may be dropped before.
    open: BTreeMap<u64, (Timestamp, String)>,
    counts: BTreeMap<String, Count>,
    last: u64,
    pub(crate) tally: Tally,
}

/// How a call ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome<'a> {
    /// Status and code, when it was refused.
    pub(crate) refusal: Option<(u16, &'a str)>,
    pub(crate) spoilt: bool,
    pub(crate) made: Option<String>,
}

impl CallLog {
    /// Notes a call that has come in and returns its number.
    pub(crate) fn open(&mut self, mut entry: Entry, keep: usize) -> u64 {
        self.last += 1;
        entry.seq = self.last;
        self.counts.entry(entry.action.clone()).or_default().calls += 1;
        self.tally.call(entry.at, &entry.action);
        while self.entries.len() >= keep.max(1) {
            self.entries.pop_front();
        }
        self.open
            .insert(entry.seq, (entry.at, entry.action.clone()));
        self.entries.push_back(entry);
        self.last
    }

    /// Notes what was decided.
    pub(crate) fn close(&mut self, seq: u64, outcome: Outcome<'_>) {
        let opened = self.open.remove(&seq);
        if let (Some((at, action)), Some((_, code))) = (opened, outcome.refusal) {
            self.tally.refusal(at, &action, code);
            self.counts.entry(action).or_default().refused += 1;
        }
        // Numbers are dense: the entry's place follows from its number.
        let Some(first) = self.entries.front().map(|entry| entry.seq) else {
            return;
        };
        let place = seq.checked_sub(first).map(usize::try_from);
        let Some(Ok(place)) = place else { return };
        let Some(entry) = self.entries.get_mut(place) else {
            return;
        };
        let refusal = outcome.refusal;
        entry.status = Some(refusal.map_or(200, |(status, _)| status));
        entry.code = refusal.map(|(_, code)| code.to_owned());
        entry.spoilt = outcome.spoilt;
        entry.made = outcome.made;
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(crate) fn counts(&self) -> &BTreeMap<String, Count> {
        &self.counts
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.open.clear();
        self.counts.clear();
        self.tally.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(action: &str) -> Entry {
        Entry {
            seq: 0,
            at: Timestamp::UNIX_EPOCH,
            action: action.to_owned(),
            params: BTreeMap::new(),
            via: Via::Memory,
            nonce: None,
            status: None,
            code: None,
            spoilt: false,
            made: None,
            request_id: String::new(),
        }
    }

    #[test]
    fn the_log_keeps_the_last_calls_and_counts_all() {
        let mut log = CallLog::default();
        let first = log.open(entry("AttachDisk"), 2);
        log.open(entry("AttachDisk"), 2);
        let last = log.open(entry("AttachDisk"), 2);
        // The log has dropped the first by now.
        for call in [first, last] {
            let outcome = Outcome {
                refusal: Some((403, "IncorrectDiskStatus")),
                ..Outcome::default()
            };
            log.close(call, outcome);
        }
        let codes: Vec<_> = log.entries().map(|e| e.code.as_deref()).collect();
        assert_eq!(codes, [None, Some("IncorrectDiskStatus")]);
        assert_eq!(
            log.counts()["AttachDisk"],
            Count {
                calls: 3,
                refused: 2
            }
        );
    }
}
