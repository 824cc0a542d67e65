//! A fake host for unit tests: its state is set, changes are recorded, and calls can be made to fail.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{HostError, Result};

mod exec;
mod host;
mod lock;
mod samples;
mod state;

pub(crate) use samples::{disk, mount_of, partition, write_file};
pub(crate) use state::FakeState;

/// The fake host. It is also the fake [`Exec`](super::Exec), so that commands are recorded in the same list.
#[derive(Debug)]
pub(crate) struct FakeHost {
    state: Mutex<FakeState>,
    notifier: watch::Sender<()>,
}

impl FakeHost {
    pub(crate) fn new(state: FakeState) -> Self {
        Self {
            state: Mutex::new(state),
            notifier: watch::Sender::new(()),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn send_uevent(&self) {
        self.notifier.send_replace(());
    }

    fn act(&self, call: &'static str, path: &Path, change: impl FnOnce(&mut FakeState)) -> Result<()> {
        let mut state = self.state();
        state.calls.push(format!("{call} {}", path.display()));
        if state.failing_call == Some(call) {
            let reason = io::Error::other("injected error");
            return Err(HostError::io(call, path, reason));
        }
        change(&mut state);
        Ok(())
    }
}
