//! The call log. It never contains a key, a signature or a security token.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use serde::Serialize;

use super::audit::Tally;

/// The transport and signature of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// HTTP with signature V1.
    V1,
    /// HTTP with signature V3.
    V3,
    /// HTTP without a signature, authenticated by an OIDC token.
    Unsigned,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Sequence number, from 1.
    pub seq: u64,
    /// Time of arrival, by the fake cloud's clock.
    pub at: Timestamp,
    /// The action as in the request.
    pub action: String,
    /// The parameters, without those of the signature.
    pub params: BTreeMap<String, String>,
    pub via: Via,
    pub nonce: Option<String>,
    /// The HTTP status; none while the call is in progress.
    pub status: Option<u16>,
    pub code: Option<String>,
    /// Whether a fault made the response lost or corrupted.
    pub faulted: bool,
    /// The ID of the resource that the call created, even if the response was lost or an error.
    /// None for a repeated call, which returns an existing resource.
    pub created: Option<String>,
    pub request_id: String,
}

impl Entry {
    /// A call in progress, without parameters.
    pub(crate) fn arrived(at: Timestamp, action: &str, via: Via, nonce: Option<String>, request_id: &str) -> Self {
        Self {
            seq: 0,
            at,
            action: action.to_owned(),
            params: BTreeMap::new(),
            via,
            nonce,
            status: None,
            code: None,
            faulted: false,
            created: None,
            request_id: request_id.to_owned(),
        }
    }
}

/// The number of calls of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub struct Count {
    pub calls: u64,
    /// Calls that returned an error.
    pub refused: u64,
}

/// The latest calls and the number of calls of each action.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallLog {
    entries: VecDeque<Entry>,
    /// Arrival time and action of the calls in progress, whose entries may be dropped earlier.
    open: BTreeMap<u64, (Timestamp, String)>,
    counts: BTreeMap<String, Count>,
    last: u64,
    pub(crate) tally: Tally,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome<'a> {
    /// Status and code of an error.
    pub(crate) error: Option<(u16, &'a str)>,
    pub(crate) faulted: bool,
    pub(crate) created: Option<String>,
}

impl CallLog {
    /// Adds a call that has arrived and returns its sequence number.
    pub(crate) fn open(&mut self, mut entry: Entry, keep: usize) -> u64 {
        self.last += 1;
        entry.seq = self.last;
        self.counts.entry(entry.action.clone()).or_default().calls += 1;
        self.tally.call(entry.at, &entry.action);
        while self.entries.len() >= keep.max(1) {
            self.entries.pop_front();
        }
        self.open.insert(entry.seq, (entry.at, entry.action.clone()));
        self.entries.push_back(entry);
        self.last
    }

    pub(crate) fn close(&mut self, seq: u64, outcome: Outcome<'_>) {
        let opened = self.open.remove(&seq);
        if let (Some((at, action)), Some((_, code))) = (opened, outcome.error) {
            self.tally.error(at, &action, code);
            self.counts.entry(action).or_default().refused += 1;
        }
        // Sequence numbers are contiguous: the position of an entry follows from its number.
        let Some(first) = self.entries.front().map(|entry| entry.seq) else {
            return;
        };
        let place = seq.checked_sub(first).map(usize::try_from);
        let Some(Ok(place)) = place else { return };
        let Some(entry) = self.entries.get_mut(place) else {
            return;
        };
        let error = outcome.error;
        entry.status = Some(error.map_or(200, |(status, _)| status));
        entry.code = error.map(|(_, code)| code.to_owned());
        entry.faulted = outcome.faulted;
        entry.created = outcome.created;
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
        self.tally = Tally::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(action: &str) -> Entry {
        Entry::arrived(Timestamp::UNIX_EPOCH, action, Via::V1, None, "")
    }

    #[test]
    fn the_log_keeps_the_last_calls_and_counts_all() {
        let mut log = CallLog::default();
        let first = log.open(entry("AttachDisk"), 2);
        log.open(entry("AttachDisk"), 2);
        let last = log.open(entry("AttachDisk"), 2);
        // The log has dropped the first one by now.
        for call in [first, last] {
            let outcome = Outcome {
                error: Some((403, "IncorrectDiskStatus")),
                ..Outcome::default()
            };
            log.close(call, outcome);
        }
        let codes: Vec<_> = log.entries().map(|e| e.code.as_deref()).collect();
        assert_eq!(codes, [None, Some("IncorrectDiskStatus")]);
        assert_eq!(log.counts()["AttachDisk"], Count { calls: 3, refused: 2 });
    }
}
