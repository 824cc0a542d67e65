//! The state of one resource in a response, and the errors of a wait.

use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Duration;

use crate::action::Unreadable;
use crate::error::{Error, Kind};

/// The state of one id in one response.
#[derive(Debug)]
pub enum Observation<V> {
    Row(Arc<V>),
    /// No row: deleted, not visible yet, or hidden from this account.
    Missing {
        /// Whether the same response had a canary: a resource that must be visible to this access key. Without one, the
        /// absence proves nothing. Even with one, the cloud's index may lag.
        canary: bool,
    },
}

impl<V> Observation<V> {
    #[must_use]
    pub fn row(self) -> Option<Arc<V>> {
        match self {
            Self::Row(row) => Some(row),
            Self::Missing { .. } => None,
        }
    }
}

impl<V: Display> Display for Observation<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(row) => write!(f, "{row}"),
            Self::Missing { canary: true } => f.write_str("not in the response"),
            Self::Missing { canary: false } => {
                f.write_str("not in the response, nor any other resource of this cluster")
            }
        }
    }
}

/// Why a wait ended without its state.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    #[error("the deadline passed while waiting; last observed: {last}")]
    Deadline {
        /// The last observation, or the last failure to make one.
        last: String,
    },
    /// The cloud has accepted the operation, and not completed it for longer than usual.
    #[error(
        "the cloud has been processing it for {} s; last observed: {last}",
        running.as_secs()
    )]
    Overdue { running: Duration, last: String },
    /// The cloud rejects the call.
    #[error("cannot read the state")]
    Cloud(#[source] Arc<Error>),
    /// The responses do not contain the resource, which does not prove that it does not exist.
    #[error("{action} does not return the resource, and whether it exists is not known: {missing}")]
    Unproven {
        action: &'static str,
        /// The missing part of the proof.
        missing: MissingProof,
    },
}

/// Why the absence of a resource is not proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MissingProof {
    /// No response had a canary.
    #[error(
        "no resource of this cluster is visible either, so the access key may belong to another account or lack the \
         permission ecs:{0}, or the region may be wrong"
    )]
    Canary(&'static str),
    /// The responses have not lacked the resource for long enough.
    #[error("it has been missing for {missing_s} s, and counts as deleted after {required_s} s")]
    Time { missing_s: u64, required_s: u64 },
    /// The cloud accepted its creation a short time ago.
    #[error("the cloud accepted its creation {age_s} s ago, and new resources can be hidden for a while")]
    Age { age_s: u64 },
}

/// Whether the same call may succeed a moment later.
pub(super) fn is_transient(error: &Error) -> bool {
    // The response arrived, and its row is wrong.
    let is_unreadable = error.is_caused_by::<Unreadable>();
    let kinds = [
        Kind::Unreachable,
        Kind::Ambiguous,
        Kind::Throttled,
        Kind::Conflict,
        Kind::OperationPending,
        Kind::NonceUsed,
        Kind::Expired,
        Kind::Deadline,
    ];
    !is_unreadable && kinds.contains(&error.kind())
}
