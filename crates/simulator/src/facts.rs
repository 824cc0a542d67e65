//! The requests of the callers and the responses, which the oracle compares with the state of the cloud.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A request of a caller, as the cloud would name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    CreateDisk {
        name: String,
    },
    /// Also creates and deletes the temporary snapshots of a clone.
    Clone {
        name: String,
    },
    Attach {
        disk: String,
        node: String,
    },
    Detach {
        disk: String,
        node: String,
    },
    Resize {
        disk: String,
    },
    DeleteDisk {
        disk: String,
    },
    CreateSnapshot {
        name: String,
    },
    DeleteSnapshot {
        snapshot: String,
    },
}

/// From the first call for a request to its success.
#[derive(Debug, Clone)]
pub(crate) struct Requested {
    pub(crate) request: Request,
    pub(crate) from: Duration,
    pub(crate) to: Option<Duration>,
}

/// A volume as its claim expects it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Volume {
    pub(crate) id: Option<String>,
    pub(crate) gib: i64,
    pub(crate) node: Option<String>,
    /// The provisioner has stopped, and no volume may exist.
    pub(crate) is_gone: bool,
    /// An operator has detached it, so that its attachment is unknown.
    pub(crate) is_touched: bool,
    /// What the claim does at the moment, and the last error.
    pub(crate) doing: String,
    pub(crate) is_done: bool,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) requested: Vec<Requested>,
    pub(crate) volumes: BTreeMap<String, Volume>,
    /// Disks that operators have created.
    pub(crate) foreign: Vec<String>,
    pub(crate) kills: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Facts(Mutex<State>);

impl Facts {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the start of a request, and returns its number.
    pub(crate) fn begin(&self, request: Request, from: Duration) -> usize {
        let mut state = self.state();
        state.requested.push(Requested {
            request,
            from,
            to: None,
        });
        state.requested.len() - 1
    }

    pub(crate) fn end(&self, number: usize, to: Duration) {
        self.state().requested[number].to = Some(to);
    }

    pub(crate) fn volume<T>(&self, name: &str, change: impl FnOnce(&mut Volume) -> T) -> T {
        change(self.state().volumes.entry(name.to_owned()).or_default())
    }
}

impl State {
    /// Whether a caller was waiting for this at that time.
    pub(crate) fn was_requested(&self, at: Duration, is_it: impl Fn(&Request) -> bool) -> bool {
        let mut requested = self.requested.iter();
        requested.any(|one| one.from <= at && one.to.is_none_or(|to| at <= to) && is_it(&one.request))
    }
}
