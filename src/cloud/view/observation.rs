//! What a poll shows of one id, and how a wait can end without its state.

use std::error::Error as StdError;
use std::fmt::{self, Display};
use std::sync::Arc;

use crate::cloud::action::Unreadable;
use crate::cloud::error::{Error, Kind};

/// What one response says of one id.
#[derive(Debug)]
pub enum Observation<V> {
    /// This row.
    Row(Arc<V>),
    /// No row: deleted, not visible yet, or hidden from this account.
    Missing {
        /// Whether the same response had a row of another resource, so that the account may see some at least. Only
        /// such an absence can mean anything; the cloud's index may still lag.
        witnessed: bool,
    },
    /// The call failed.
    Failed(Arc<Error>),
}

/// What a single look shows.
#[derive(Debug)]
pub enum Look<V> {
    /// This row.
    Row(Arc<V>),
    /// No row; see [`Observation::Missing`].
    Missing {
        /// Whether the same response had a row of another resource.
        witnessed: bool,
    },
}

impl<V> Look<V> {
    /// The row, if there is one.
    #[must_use]
    pub fn row(self) -> Option<Arc<V>> {
        match self {
            Self::Row(row) => Some(row),
            Self::Missing { .. } => None,
        }
    }
}

impl<V> Clone for Observation<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Row(row) => Self::Row(Arc::clone(row)),
            Self::Missing { witnessed } => Self::Missing {
                witnessed: *witnessed,
            },
            Self::Failed(error) => Self::Failed(Arc::clone(error)),
        }
    }
}

impl<V: Display> Display for Observation<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(row) => write!(f, "{row}"),
            Self::Missing { witnessed: true } => f.write_str("not in the response"),
            Self::Missing { witnessed: false } => f.write_str("an empty response"),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

/// Why a wait ended without its state.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// The deadline came first.
    #[error("the deadline passed while waiting; last seen: {last}")]
    Deadline {
        /// The last observation, in words.
        last: String,
    },
    /// The cloud rejects the call.
    #[error("cannot look at the state")]
    Cloud(#[source] Arc<Error>),
    /// The response was empty, and nothing shows that it would not be for a resource that exists.
    #[error(
        "{action} returned an empty response, which the cloud also returns without the permission ecs:{action}; \
         whether the resource exists is unknown"
    )]
    Unproven {
        /// The describe action.
        action: &'static str,
    },
}

/// Whether the same call may succeed a moment later.
pub(super) fn is_transient(error: &Error) -> bool {
    // The response arrived, and its row is wrong.
    if StdError::source(error).is_some_and(|cause| cause.is::<Unreadable>()) {
        return false;
    }
    match error.kind() {
        Kind::Unreachable
        | Kind::Ambiguous
        | Kind::Throttled
        | Kind::Conflict
        | Kind::InFlight
        | Kind::Resign
        | Kind::Expired
        | Kind::Deadline => true,
        Kind::TokenMismatch
        | Kind::NotFound
        | Kind::OutOfStock
        | Kind::Quota
        | Kind::Precondition
        | Kind::OutOfRange
        | Kind::Bug
        | Kind::Denied
        | Kind::Invalid
        | Kind::Credentials => false,
    }
}
