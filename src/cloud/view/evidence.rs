//! Proof that a resource does not exist.

use std::collections::VecDeque;
use std::time::Duration;

use crate::cloud::Result;
use crate::cloud::error::{Condition, Error};

/// How old the state in a description may be (eventual consistency).
pub const READ_LAG: Duration = Duration::from_secs(3);

/// A resource certainly does not exist. Only evidence creates one: an accepted deletion, an error
/// that names the resource, or, for resources that no call names, responses that return requested
/// others but not this one for longer than reads lag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfirmedAbsent(());

impl ConfirmedAbsent {
    /// The deletion of the resource was accepted, or the cloud names the resource as missing.
    #[must_use]
    pub fn from_deletion(outcome: &Result<()>) -> Option<Self> {
        match outcome {
            Ok(()) => Some(Self(())),
            Err(error) => Self::from_error(error),
        }
    }

    /// The cloud names the only disk, snapshot or group of the request as missing. A code about
    /// another resource proves nothing.
    #[must_use]
    pub fn from_error(error: &Error) -> Option<Self> {
        let about = match error.condition() {
            Condition::NotFound => "",
            Condition::NoSuchDisk => "Disk",
            Condition::NoSuchSnapshot => "Snapshot",
            Condition::NoSuchGroup => "SnapshotGroup",
            _ => return None,
        };
        let action = error.action();
        (action.contains(about) || action == "UntagResources").then_some(Self(()))
    }

    /// The absence of the resource was proven before.
    pub(super) fn recorded<K: Clone + Eq>(absent: &RecentIds<K>, id: &K) -> Option<Self> {
        absent.contains(id).then_some(Self(()))
    }

    /// A read that began `age` after the first one returned other resources but not this one.
    pub(super) fn from_reads(age: Duration, witnessed: bool) -> Option<Self> {
        (witnessed && age >= READ_LAG).then_some(Self(()))
    }
}

/// The most recently inserted ids, the newest last.
pub(super) struct RecentIds<K> {
    ids: VecDeque<K>,
    capacity: usize,
}

impl<K: Clone + Eq> RecentIds<K> {
    pub(super) fn new(capacity: usize) -> Self {
        let ids = VecDeque::new();
        Self { ids, capacity }
    }

    pub(super) fn insert(&mut self, id: &K) {
        if self.ids.back() == Some(id) {
            return;
        }
        self.remove(id);
        if self.ids.len() == self.capacity {
            self.ids.pop_front();
        }
        self.ids.push_back(id.clone());
    }

    pub(super) fn remove(&mut self, id: &K) {
        self.ids.retain(|known| known != id);
    }

    pub(super) fn contains(&self, id: &K) -> bool {
        self.ids.contains(id)
    }

    /// The newest id that is not one of these; none if all of these are contained.
    pub(super) fn newest_except(&self, ids: &[K]) -> Option<K> {
        if ids.iter().all(|id| self.contains(id)) {
            return None;
        }
        let mut newest_first = self.ids.iter().rev();
        newest_first.find(|known| !ids.contains(known)).cloned()
    }
}
