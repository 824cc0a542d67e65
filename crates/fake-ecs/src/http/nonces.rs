//! The nonces of recent requests.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;

use crate::distribution::until;

/// How long a nonce cannot be reused.
const NONCE_MEMORY: Duration = Duration::from_mins(31);

#[derive(Debug, Default)]
pub(super) struct Nonces {
    used: HashSet<String>,
    queue: VecDeque<(Timestamp, String)>,
}

impl Nonces {
    /// Records a nonce; false if it was used already.
    pub(super) fn take(&mut self, nonce: &str, now: Timestamp) -> bool {
        while let Some((at, old)) = self.queue.front()
            && until(*at, now) >= NONCE_MEMORY
        {
            self.used.remove(old);
            self.queue.pop_front();
        }
        if !self.used.insert(nonce.to_owned()) {
            return false;
        }
        self.queue.push_back((now, nonce.to_owned()));
        true
    }
}
