//! System calls that nobody waits for any more, because their deadline has passed, and that hang in the
//! kernel all the same: on a dead device for ever. Each has a thread to itself, and those are not many. So
//! what hangs is not begun a second time: a volume that is asked for again and again holds one thread for
//! each step, and never the last one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is done, and on which path.
type Key = (&'static str, PathBuf);

/// How many calls hang. Threads belong to the process, and so does this.
static HANGING: Mutex<BTreeMap<Key, usize>> = Mutex::new(BTreeMap::new());

fn hanging() -> MutexGuard<'static, BTreeMap<Key, usize>> {
    // No code under this lock can panic between two of its changes.
    HANGING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an earlier call of this step on this path was given up and has not ended.
pub(super) fn is_hanging(step: &'static str, path: &Path) -> bool {
    hanging().contains_key(&(step, path.to_owned()))
}

/// How a call that is watched is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    GivenUp,
    Ended,
}

/// A call that is watched by who makes it and who waits for it.
#[derive(Debug)]
pub(super) struct Watch {
    key: Key,
    state: Mutex<State>,
}

impl Watch {
    pub(super) fn new(step: &'static str, path: &Path) -> Self {
        Self {
            key: (step, path.to_owned()),
            state: Mutex::new(State::Running),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody waits for it any more.
    pub(super) fn give_up(&self) {
        let mut state = self.state();
        if *state == State::Running {
            *state = State::GivenUp;
            *hanging().entry(self.key.clone()).or_default() += 1;
        }
    }

    pub(super) fn end(&self) {
        let mut state = self.state();
        if *state == State::GivenUp {
            let mut hanging = hanging();
            if let Some(count) = hanging.get_mut(&self.key) {
                *count -= 1;
                if *count == 0 {
                    hanging.remove(&self.key);
                }
            }
        }
        *state = State::Ended;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_hangs_from_when_it_is_given_up_until_it_ends() {
        let path = Path::new("/hang/one");
        let (one, other) = (Watch::new("read", path), Watch::new("read", path));
        assert!(!is_hanging("read", path));
        one.give_up();
        one.give_up();
        other.give_up();
        assert!(is_hanging("read", path) && !is_hanging("stat", path));
        one.end();
        assert!(is_hanging("read", path));
        other.end();
        assert!(!is_hanging("read", path));
        let quick = Watch::new("read", path);
        quick.end();
        quick.give_up();
        assert!(!is_hanging("read", path));
    }
}
