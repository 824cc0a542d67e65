//! The state of one resource in a response, and the errors of a wait.

use std::error::Error as StdError;
use std::fmt::{self, Display};
use std::sync::Arc;

use crate::cloud::action::Unreadable;
use crate::cloud::error::{Error, Kind};

/// The state of one id in one response.
#[derive(Debug)]
pub enum Observation<V> {
    Row(Arc<V>),
    /// No row: deleted, not visible yet, or hidden from this account.
    Missing {
        /// Whether the same response had a row of another resource, so that the account may describe some at least.
        /// Otherwise the absence means nothing. Even then the cloud's index may lag.
        witnessed: bool,
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
            Self::Missing { witnessed: true } => f.write_str("not in the response"),
            Self::Missing { witnessed: false } => f.write_str("an empty response"),
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
    /// The cloud rejects the call.
    #[error("cannot read the state")]
    Cloud(#[source] Arc<Error>),
    /// The responses do not contain the resource, and nothing proves that it does not exist.
    #[error(
        "{action} does not return the resource, as it also does without the permission ecs:{action}, and no other call \
         names the resource as missing; whether it exists is unknown"
    )]
    Unproven { action: &'static str },
}

/// Whether the same call may succeed a moment later.
pub(super) fn is_transient(error: &Error) -> bool {
    // The response arrived, and its row is wrong.
    let is_unreadable = StdError::source(error).is_some_and(|cause| cause.is::<Unreadable>());
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
