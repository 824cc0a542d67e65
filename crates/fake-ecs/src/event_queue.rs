//! The queue of future events, by time.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::instance::PowerState;

/// A change of state at a future time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    Created {
        disk: String,
    },
    /// A created disk disappears: an injected fault.
    Vanished {
        disk: String,
    },
    /// A disk has been loaded from its snapshot.
    Loaded {
        disk: String,
    },
    Attached {
        disk: String,
        instance: String,
    },
    /// An attach fails after it was accepted: an injected fault.
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
    /// A change of the category finishes or fails.
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
    /// A snapshot fails: an injected fault.
    SnapshotFailed {
        snapshot: String,
    },
    /// The retention period of a snapshot is over.
    SnapshotExpired {
        snapshot: String,
    },
    SnapshotDeleted {
        snapshot: String,
    },
    PowerState {
        instance: String,
        to: PowerState,
    },
}

/// Events by time; those of the same time in the order in which they were scheduled.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    planned: BTreeMap<(Timestamp, u64), Event>,
    last: u64,
}

impl EventQueue {
    pub(crate) fn push(&mut self, at: Timestamp, due: Event) {
        self.last += 1;
        self.planned.insert((at, self.last), due);
    }

    /// Removes the first event that is due.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<(Timestamp, Event)> {
        let first = self.planned.first_entry()?;
        let at = first.key().0;
        (at <= now).then(|| (at, first.remove()))
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.planned.keys().next().map(|(at, _)| *at)
    }

    pub(crate) fn cancel(&mut self, matches: impl Fn(&Event) -> bool) {
        self.planned.retain(|_, due| !matches(due));
    }
}
