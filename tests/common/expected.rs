//! Requests of the callers, the responses, and their times, with which the state of the cloud is compared.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use diskplugin::base::Clock;
use jiff::Timestamp;

/// From the first request for an operation to its successful response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) started: Option<Timestamp>,
    pub(crate) completed: Option<Timestamp>,
}

impl Interval {
    /// Whether the driver may call the cloud for the operation at this time.
    pub(crate) fn covers(self, at: Timestamp) -> bool {
        self.started.is_some_and(|started| started <= at) && self.completed.is_none_or(|completed| at <= completed)
    }

    pub(crate) fn completed_before(self, at: Timestamp) -> bool {
        self.completed.is_some_and(|completed| completed < at)
    }

    pub(crate) fn started_by(self, at: Timestamp) -> bool {
        self.started.is_some_and(|started| started <= at)
    }
}

/// A volume as its callers expect it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Volume {
    pub(crate) name: String,
    /// Set when the volume was created.
    pub(crate) id: Option<String>,
    /// GiB.
    pub(crate) size: u32,
    pub(crate) created: Interval,
    pub(crate) node: Option<String>,
    pub(crate) published: Interval,
    pub(crate) unpublished: Interval,
    /// GiB after the expansion.
    pub(crate) larger: Option<u32>,
    pub(crate) expanded: Interval,
    pub(crate) deleted: Interval,
    /// The ID of the source snapshot.
    pub(crate) from: Option<String>,
}

/// A snapshot as its callers expect it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) volume: String,
    pub(crate) created: Interval,
    pub(crate) deleted: Interval,
}

/// Volumes and snapshots by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    pub(crate) volumes: BTreeMap<String, Volume>,
    pub(crate) snapshots: BTreeMap<String, Snapshot>,
    /// Responses that contradict the state of the cloud.
    pub(crate) incorrect_responses: Vec<String>,
}

/// Records the expected state for all callers of a run.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    expected: Arc<Mutex<Expected>>,
    clock: Arc<dyn Clock>,
}

impl Recorder {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            expected: Arc::default(),
            clock,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn expected(&self) -> MutexGuard<'_, Expected> {
        self.expected.lock().unwrap()
    }

    pub(crate) fn volume(&self, name: &str, note: impl FnOnce(&mut Volume, Timestamp)) {
        let mut expected = self.expected();
        let volume = expected.volumes.entry(name.to_owned()).or_default();
        name.clone_into(&mut volume.name);
        note(volume, self.clock.now());
    }

    pub(crate) fn snapshot(&self, name: &str, note: impl FnOnce(&mut Snapshot, Timestamp)) {
        let mut expected = self.expected();
        let snapshot = expected.snapshots.entry(name.to_owned()).or_default();
        name.clone_into(&mut snapshot.name);
        note(snapshot, self.clock.now());
    }

    pub(crate) fn incorrect(&self, what: &str) {
        let text = format!("{}: {what}", self.now());
        self.expected().incorrect_responses.push(text);
    }
}
