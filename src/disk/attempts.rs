//! What this process remembers of calls with a token that have not ended well. It saves calls and closes the
//! gap until the tag index knows a new disk; after a restart the cloud's tokens and tags suffice.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::provision::place::Candidate;
use crate::cloud::{Error, Kind};
use crate::model::ClientToken;

/// How many names are remembered. Forgetting one is as safe as a restart.
const MOST: usize = 1000;

/// The pasts of all names.
#[derive(Debug, Default)]
pub(super) struct AttemptHistory(Mutex<HashMap<String, PriorAttempts>>);

/// What earlier calls under one name, or for one disk, left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PriorAttempts {
    /// How many calls were refused: each may have used its token up.
    pub(super) refused: u32,
    /// What may have been bought without an answer, and under which token.
    pub(super) unclear: Option<(Candidate, ClientToken)>,
    /// The disk or snapshot that the name had and that is no more.
    pub(super) gone: Option<String>,
    /// The one that the name has, as long as no description shows it, and since when.
    pub(super) missed: Option<(String, Instant)>,
}

impl AttemptHistory {
    pub(super) fn of(&self, name: &str) -> PriorAttempts {
        self.lock().get(name).cloned().unwrap_or_default()
    }

    /// Changes the past of a name; one that is empty again takes no room.
    pub(super) fn note(&self, name: &str, change: impl FnOnce(&mut PriorAttempts)) {
        let mut pasts = self.lock();
        // Names that never end well, because nobody asks for them again, must not add up.
        if pasts.len() >= MOST
            && !pasts.contains_key(name)
            && let Some(other) = pasts.keys().next().cloned()
        {
            pasts.remove(&other);
        }
        let past = pasts.entry(name.to_owned()).or_default();
        change(past);
        if *past == PriorAttempts::default() {
            pasts.remove(name);
        }
    }

    /// A description does not show what the name has; since when that is so.
    pub(super) fn missed(&self, name: &str, id: &str) -> Instant {
        if let Some((other, since)) = self.of(name).missed
            && other == id
        {
            return since;
        }
        let now = Instant::now();
        self.note(name, |past| past.missed = Some((id.to_owned(), now)));
        now
    }

    /// A description shows what the name has.
    pub(super) fn seen(&self, name: &str) {
        if self.of(name).missed.is_some() {
            self.note(name, |past| past.missed = None);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, PriorAttempts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the cloud has decided and nothing was done. Anything else may have taken effect; only of
/// a decided call can the token be used up.
pub(super) fn is_final(error: &Error) -> bool {
    match error.kind() {
        Kind::OutOfStock
        | Kind::Quota
        | Kind::Precondition
        | Kind::OutOfRange
        | Kind::Bug
        | Kind::Invalid
        | Kind::Conflict
        | Kind::NotFound => true,
        Kind::Unreachable
        | Kind::Ambiguous
        | Kind::Throttled
        | Kind::InFlight
        | Kind::TokenMismatch
        | Kind::Denied
        | Kind::Expired
        | Kind::Resign
        | Kind::Deadline
        | Kind::Credentials => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_ended_well_leaves_nothing_behind() {
        let trail = AttemptHistory::default();
        trail.note("pvc-1", |past| past.refused += 1);
        assert_eq!(trail.of("pvc-1").refused, 1);
        trail.note("pvc-1", |past| past.refused = 0);
        assert!(trail.lock().is_empty());
    }

    #[test]
    fn names_that_nobody_asks_for_again_do_not_add_up() {
        let trail = AttemptHistory::default();
        for n in 0..3 * MOST {
            trail.note(&format!("pvc-{n}"), |past| past.refused += 1);
        }
        assert_eq!(trail.lock().len(), MOST);
        assert_eq!(trail.of(&format!("pvc-{}", 3 * MOST - 1)).refused, 1);
    }
}
