//! The histories of volumes: the last calls for each of them, with their phases and cloud calls. Bounded.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Serialize, Serializer};

pub(super) use self::call::RecordedCall;
pub(crate) use self::call::Summary;
use crate::base::{Clock, lock};

mod call;

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
    /// The calls of all volumes, the oldest first, each with the disk ID, or with the name until the disk is known.
    calls: VecDeque<(String, Arc<RecordedCall>)>,
    /// Disk IDs by volume name.
    disks: HashMap<String, String>,
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
        let mut volumes = lock(&self.volumes);
        if volumes.position(call).is_none() {
            lock(&call.record).name = Some(name.to_owned());
            volumes.push(name, call);
        }
    }

    /// Assigns the call to a disk. If it has a name, the history of the name becomes that of the disk.
    pub(super) fn assign_disk(&self, call: &Arc<RecordedCall>, disk: &str) {
        let mut volumes = lock(&self.volumes);
        let name = lock(&call.record).name.clone();
        let at = volumes.position(call).unwrap_or_else(|| {
            volumes.push(disk, call);
            volumes.calls.len() - 1
        });
        volumes.connect(at, name, disk);
    }

    pub(super) fn end(&self, call: &Arc<RecordedCall>, code: &str, message: Option<String>, elapsed: Duration) {
        call.end(code, message, elapsed);
        let mut volumes = lock(&self.volumes);
        let Some(at) = volumes.position(call) else { return };
        if call.is_routine() {
            volumes.remove_recovered(at, call);
        } else if let Some(before) = volumes.before(at)
            && call.repeats(&volumes.calls[before].1)
        {
            // Sidecars and kubelet retry.
            volumes.calls.remove(before);
        }
    }

    /// The history of a volume, by disk ID or volume name.
    pub(crate) fn history(&self, volume: &str) -> Option<History> {
        let volumes = lock(&self.volumes);
        let key = volumes.key(volume);
        let calls = volumes.calls.iter().filter(|(of, _)| *of == key);
        let calls: Vec<_> = calls.map(|(_, call)| Arc::clone(call)).collect();
        let named = volumes.disks.iter().filter(|(_, disk)| **disk == key);
        let mut names: Vec<String> = named.map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        let volume = key;
        (!calls.is_empty()).then_some(History { volume, names, calls })
    }

    /// All volumes with a history, with the last call of each.
    pub(crate) fn last_calls(&self) -> BTreeMap<String, Arc<RecordedCall>> {
        lock(&self.volumes).calls.iter().cloned().collect()
    }

    /// The calls of all volumes, in no order.
    pub(crate) fn summaries(&self) -> Vec<Summary> {
        let volumes = lock(&self.volumes);
        let calls = volumes.calls.iter();
        calls.map(|(key, call)| call.summary(key.clone())).collect()
    }
}

impl Volumes {
    /// The disk that was last created under this name; otherwise the name or ID itself.
    fn key(&self, volume: &str) -> String {
        self.disks.get(volume).map_or(volume, String::as_str).to_owned()
    }

    fn position(&self, call: &Arc<RecordedCall>) -> Option<usize> {
        self.calls.iter().rposition(|(_, one)| Arc::ptr_eq(one, call))
    }

    /// The position of the call before this one in the history of its volume.
    fn before(&self, at: usize) -> Option<usize> {
        let mut earlier = self.calls.range(..at);
        earlier.rposition(|(key, _)| *key == self.calls[at].0)
    }

    fn push(&mut self, volume: &str, call: &Arc<RecordedCall>) {
        let key = self.key(volume);
        let mut own = (0..self.calls.len()).rev().filter(|at| self.calls[*at].0 == key);
        if let Some(oldest) = own.nth(MAX_CALLS_PER_VOLUME - 1) {
            self.calls.remove(oldest);
        }
        self.calls.push_back((key, Arc::clone(call)));
        if self.calls.len() > MAX_CALLS
            && let Some((oldest, _)) = self.calls.pop_front()
        {
            self.forget_if_empty(&oldest);
        }
    }

    /// Moves the call at this position, and the history of its name, to a disk. The name may have been used before, for
    /// a disk that no longer exists.
    fn connect(&mut self, at: usize, name: Option<String>, disk: &str) {
        let before = std::mem::replace(&mut self.calls[at].0, disk.to_owned());
        if let Some(name) = name {
            for (key, _) in self.calls.iter_mut().filter(|(key, _)| *key == name) {
                disk.clone_into(key);
            }
            self.disks.insert(name, disk.to_owned());
        }
        self.forget_if_empty(&before);
    }

    /// Removes a routine call that succeeded, and its failures before: the caller has the result.
    fn remove_recovered(&mut self, at: usize, call: &Arc<RecordedCall>) {
        let Some((key, _)) = self.calls.remove(at) else { return };
        self.calls.retain(|(of, failed)| *of != key || !call.recovers(failed));
        self.forget_if_empty(&key);
    }

    /// Forgets the names of a disk without calls.
    fn forget_if_empty(&mut self, disk: &str) {
        if !self.calls.iter().any(|(key, _)| key == disk) {
            self.disks.retain(|_, known| known != disk);
        }
    }
}

#[cfg(test)]
mod tests;
