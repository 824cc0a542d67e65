//! What the callers asked for and were told, and when: the truth of the cloud is held against it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use diskplugin::base::Clock;
use jiff::Timestamp;

/// From when something was first asked for, and until when it was told to be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) asked: Option<Timestamp>,
    pub(crate) told: Option<Timestamp>,
}

impl Span {
    /// Whether a call of the driver at this time was wanted: not before it was asked for, and not
    /// after it was done.
    pub(crate) fn covers(self, at: Timestamp) -> bool {
        self.asked.is_some_and(|asked| asked <= at) && self.told.is_none_or(|told| at <= told)
    }

    /// Whether it was told to be done before this time.
    pub(crate) fn done_before(self, at: Timestamp) -> bool {
        self.told.is_some_and(|told| told < at)
    }

    /// Whether it was asked for by this time.
    pub(crate) fn begun_by(self, at: Timestamp) -> bool {
        self.asked.is_some_and(|asked| asked <= at)
    }
}

/// One volume, as its callers know it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Volume {
    pub(crate) name: String,
    /// Once a create was answered.
    pub(crate) id: Option<String>,
    /// GiB.
    pub(crate) size: u32,
    pub(crate) created: Span,
    pub(crate) node: Option<String>,
    pub(crate) published: Span,
    pub(crate) unpublished: Span,
    /// GiB after the expansion.
    pub(crate) larger: Option<u32>,
    pub(crate) expanded: Span,
    pub(crate) deleted: Span,
    /// The snapshot that it was restored from, by id.
    pub(crate) from: Option<String>,
}

/// One snapshot, as its callers know it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) volume: String,
    pub(crate) created: Span,
    pub(crate) deleted: Span,
}

/// All of them, by name, and what was wrong.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) volumes: BTreeMap<String, Volume>,
    pub(crate) snapshots: BTreeMap<String, Snapshot>,
    /// What callers were told that was not so.
    pub(crate) false_answers: Vec<String>,
}

/// The facts, shared by the callers of one run.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    facts: Arc<Mutex<Facts>>,
    clock: Arc<dyn Clock>,
}

impl Ledger {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            facts: Arc::default(),
            clock,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap()
    }

    /// Notes something of a volume.
    pub(crate) fn volume(&self, name: &str, note: impl FnOnce(&mut Volume, Timestamp)) {
        let mut facts = self.facts();
        let volume = facts.volumes.entry(name.to_owned()).or_default();
        name.clone_into(&mut volume.name);
        note(volume, self.clock.now());
    }

    /// Notes something of a snapshot.
    pub(crate) fn snapshot(&self, name: &str, note: impl FnOnce(&mut Snapshot, Timestamp)) {
        let mut facts = self.facts();
        let snapshot = facts.snapshots.entry(name.to_owned()).or_default();
        name.clone_into(&mut snapshot.name);
        note(snapshot, self.clock.now());
    }

    /// Notes that somebody was told what is not so.
    pub(crate) fn wrong(&self, what: &str) {
        let text = format!("{}: {what}", self.now());
        self.facts().false_answers.push(text);
    }
}
