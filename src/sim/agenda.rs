//! What is still to happen, by time.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::instance::Power;

/// Something that happens later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Due {
    Created {
        disk: String,
    },
    /// A created disk disappears: an injected outcome.
    Vanished {
        disk: String,
    },
    /// A disk has been filled from its snapshot.
    Loaded {
        disk: String,
    },
    Attached {
        disk: String,
        instance: String,
    },
    /// An attach falls back: an injected outcome.
    AttachFailed {
        disk: String,
        instance: String,
    },
    Detached {
        disk: String,
        instance: String,
    },
    Resized {
        disk: String,
        size: u32,
        visible: bool,
    },
    /// A spec change ends, one way or the other.
    Modified {
        task: String,
        success: bool,
    },
    Deleted {
        disk: String,
        serial: String,
    },
    Cut {
        snapshot: String,
    },
    Accomplished {
        snapshot: String,
    },
    /// A snapshot fails: an injected outcome.
    SnapshotFailed {
        snapshot: String,
    },
    /// The days for which a snapshot is kept are over.
    SnapshotExpired {
        snapshot: String,
    },
    SnapshotDeleted {
        snapshot: String,
    },
    Power {
        instance: String,
        to: Power,
    },
}

/// Due things by time; those of the same time in the order in which they were planned.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    planned: BTreeMap<(Timestamp, u64), Due>,
    last: u64,
}

impl Agenda {
    pub(crate) fn push(&mut self, at: Timestamp, due: Due) {
        self.last += 1;
        self.planned.insert((at, self.last), due);
    }

    /// The first thing that is due by now.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<(Timestamp, Due)> {
        let first = self.planned.first_entry()?;
        let at = first.key().0;
        (at <= now).then(|| (at, first.remove()))
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.planned.keys().next().map(|(at, _)| *at)
    }

    /// Strikes out what matches.
    pub(crate) fn cancel(&mut self, matches: impl Fn(&Due) -> bool) {
        self.planned.retain(|_, due| !matches(due));
    }
}
