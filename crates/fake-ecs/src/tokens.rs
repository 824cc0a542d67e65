//! The client tokens in use.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;

use super::action::Action;
use super::distribution::until;
use super::response::ApiResult;

#[derive(Debug, Default)]
pub(crate) struct Tokens {
    pub(super) used: BTreeMap<(Action, String), Use>,
    /// The keys of `used` by age.
    pub(super) queue: VecDeque<(Timestamp, (Action, String))>,
    /// Whether the last call was a replay, which created nothing.
    pub(crate) repeated: bool,
}

#[derive(Debug)]
pub(super) struct Use {
    pub(super) fingerprint: String,
    pub(super) at: Timestamp,
    pub(super) reply: ApiResult,
}

impl Tokens {
    pub(super) fn forget(&mut self, now: Timestamp, memory: Duration) {
        while let Some((at, key)) = self.queue.front()
            && until(*at, now) >= memory
        {
            self.used.remove(key);
            self.queue.pop_front();
        }
    }
}
