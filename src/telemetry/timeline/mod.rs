//! The histories of volumes: the last calls for each of them, with their phases and cloud calls. Bounded.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Serialize, Serializer};

pub(super) use self::call::RecordedCall;
pub(crate) use self::summary::Summary;
use crate::base::{Clock, lock};

mod call;
mod summary;

/// Calls in the history of a volume, and of all volumes. A call takes 1 to 6 KiB.
const MAX_CALLS_PER_VOLUME: usize = 32;
const MAX_CALLS: usize = 2048;

#[derive(Debug)]
pub(crate) struct Timelines {
    clock: Arc<dyn Clock>,
    volumes: Mutex<Volumes>,
}

#[derive(Debug, Default)]
struct Volumes {
    /// The calls of each volume by disk ID, or by name until the disk is known; the oldest first.
    calls: HashMap<String, VecDeque<Arc<RecordedCall>>>,
    /// Disk IDs by volume name.
    disks: HashMap<String, String>,
    /// The keys of all calls, in the order of the calls.
    order: VecDeque<String>,
}

/// The history of a volume as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct History {
    /// The disk ID, or the name of a volume without a disk.
    pub(crate) volume: String,
    /// The names under which its disk was requested.
    pub(crate) names: Vec<String>,
    /// The oldest first.
    #[serde(serialize_with = "each")]
    pub(crate) calls: Vec<Arc<RecordedCall>>,
}

fn each<S: Serializer>(calls: &[Arc<RecordedCall>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(calls.iter().map(AsRef::as_ref))
}

impl Timelines {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            volumes: Mutex::default(),
        }
    }

    /// Starts a call. It is in no history until it is assigned to a volume.
    pub(super) fn start(&self, method: &str) -> Arc<RecordedCall> {
        Arc::new(RecordedCall::new(method, self.clock.now()))
    }

    /// Assigns the call to the volume with this name, or to the disk that was last created under it.
    pub(super) fn assign_name(&self, call: &Arc<RecordedCall>, name: &str) {
        let mut record = lock(&call.record);
        if record.key.is_none() {
            record.name = Some(name.to_owned());
            drop(record);
            lock(&self.volumes).push(name, call);
        }
    }

    /// Assigns the call to a disk. If it has a name, the history of the name becomes that of the disk.
    pub(super) fn assign_disk(&self, call: &Arc<RecordedCall>, disk: &str) {
        let mut volumes = lock(&self.volumes);
        let record = lock(&call.record);
        let (key, name) = (record.key.clone(), record.name.clone());
        drop(record);
        match (key, name) {
            (None, _) => volumes.push(disk, call),
            (Some(key), _) if key == disk => {}
            (Some(key), Some(name)) if key == name => volumes.connect(&name, disk),
            (Some(key), name) => {
                // The name was used before, for a disk that no longer exists.
                volumes.remove(&key, call);
                if let Some(name) = name {
                    volumes.disks.insert(name, disk.to_owned());
                }
                volumes.push(disk, call);
            }
        }
    }

    pub(super) fn end(&self, call: &Arc<RecordedCall>, code: &str, message: Option<String>, elapsed: Duration) {
        call.end(code, message, elapsed);
        let Some(key) = lock(&call.record).key.clone() else {
            return;
        };
        let mut volumes = lock(&self.volumes);
        if call.is_routine() {
            volumes.remove(&key, call);
            volumes.remove_recovered(&key, call);
        } else {
            volumes.merge_repeated(&key, call);
        }
    }

    /// The history of a volume, by disk ID or volume name.
    pub(crate) fn history(&self, volume: &str) -> Option<History> {
        let volumes = lock(&self.volumes);
        let key = volumes.disks.get(volume).map_or(volume, String::as_str);
        let calls = volumes.calls.get(key)?;
        let named = volumes.disks.iter().filter(|(_, disk)| *disk == key);
        let mut names: Vec<String> = named.map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        Some(History {
            volume: key.to_owned(),
            names,
            calls: calls.iter().cloned().collect(),
        })
    }

    /// All volumes with a history, with the last call of each.
    pub(crate) fn last_calls(&self) -> Vec<(String, Arc<RecordedCall>)> {
        let volumes = lock(&self.volumes);
        let last = volumes
            .calls
            .iter()
            .filter_map(|(key, calls)| Some((key.clone(), Arc::clone(calls.back()?))));
        let mut last: Vec<_> = last.collect();
        last.sort_by(|(a, _), (b, _)| a.cmp(b));
        last
    }

    /// The calls of all volumes, in no order.
    pub(crate) fn summaries(&self) -> Vec<Summary> {
        let volumes = lock(&self.volumes);
        let calls = volumes.calls.iter();
        calls
            .flat_map(|(key, calls)| calls.iter().map(|call| call.summary(key.clone())))
            .collect()
    }
}

impl Volumes {
    fn push(&mut self, key: &str, call: &Arc<RecordedCall>) {
        let key = self.disks.get(key).cloned().unwrap_or_else(|| key.to_owned());
        lock(&call.record).key = Some(key.clone());
        let calls = self.calls.entry(key.clone()).or_default();
        calls.push_back(Arc::clone(call));
        let is_full = calls.len() > MAX_CALLS_PER_VOLUME;
        if is_full {
            calls.pop_front();
            self.remove_key(&key);
        }
        self.order.push_back(key);
        if self.order.len() > MAX_CALLS
            && let Some(oldest) = self.order.pop_front()
        {
            self.forget_oldest(&oldest);
        }
    }

    fn forget_oldest(&mut self, key: &str) {
        // The key of calls before their disk was known.
        let key = self.disks.get(key).map_or(key, String::as_str).to_owned();
        let Some(calls) = self.calls.get_mut(&key) else {
            return;
        };
        calls.pop_front();
        self.forget_if_empty(&key);
    }

    /// Removes a call from a history.
    fn remove(&mut self, key: &str, call: &Arc<RecordedCall>) {
        let Some(calls) = self.calls.get_mut(key) else {
            return;
        };
        if let Some(at) = calls.iter().position(|one| Arc::ptr_eq(one, call)) {
            calls.remove(at);
            self.remove_key(key);
            self.forget_if_empty(key);
        }
    }

    /// Removes the failures of a routine call that succeeds now: the caller has the result.
    fn remove_recovered(&mut self, key: &str, call: &Arc<RecordedCall>) {
        let calls = self.calls.get(key).into_iter().flatten();
        let recovered: Vec<_> = calls.filter(|failed| call.recovers(failed)).cloned().collect();
        for failed in recovered {
            self.remove(key, &failed);
        }
    }

    /// Removes one key of a volume from the order.
    fn remove_key(&mut self, key: &str) {
        if let Some(at) = self.order.iter().position(|other| other == key) {
            self.order.remove(at);
        }
    }

    fn forget_if_empty(&mut self, key: &str) {
        if self.calls.get(key).is_some_and(VecDeque::is_empty) {
            self.calls.remove(key);
            self.disks.retain(|_, disk| disk != key);
        }
    }

    /// Moves the history of a name to its disk.
    fn connect(&mut self, name: &str, disk: &str) {
        let Some(calls) = self.calls.remove(name) else {
            return;
        };
        for call in &calls {
            lock(&call.record).key = Some(disk.to_owned());
        }
        for key in self.order.iter_mut().filter(|key| *key == name) {
            disk.clone_into(key);
        }
        let own = self.calls.entry(disk.to_owned()).or_default();
        let later = std::mem::replace(own, calls);
        own.extend(later);
        self.disks.insert(name.to_owned(), disk.to_owned());
    }

    /// Merges a call into the one before it if both failed alike: sidecars and kubelet retry.
    fn merge_repeated(&mut self, key: &str, call: &Arc<RecordedCall>) {
        let Some(calls) = self.calls.get_mut(key) else {
            return;
        };
        let Some(at) = calls.iter().position(|one| Arc::ptr_eq(one, call)) else {
            return;
        };
        let before = at.checked_sub(1).and_then(|before| calls.get(before));
        if before.is_some_and(|before| call.repeats(before)) {
            calls.remove(at - 1);
            self.remove_key(key);
        }
    }
}

#[cfg(test)]
mod tests;
