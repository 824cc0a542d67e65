//! What a look showed, and how a wait can end without its state.

use std::error::Error as StdError;
use std::fmt::{self, Display};
use std::sync::Arc;

use crate::cloud::action::Unreadable;
use crate::cloud::error::{Error, Kind};

/// What one description said of one id.
#[derive(Debug)]
pub enum Seen<V> {
    /// This row.
    Row(Arc<V>),
    /// No row: gone, not there yet, or hidden from this account.
    Nothing,
    /// The description failed.
    Failed(Arc<Error>),
}

impl<V> Clone for Seen<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Row(row) => Self::Row(Arc::clone(row)),
            Self::Nothing => Self::Nothing,
            Self::Failed(error) => Self::Failed(Arc::clone(error)),
        }
    }
}

impl<V: Display> Display for Seen<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(row) => write!(f, "{row}"),
            Self::Nothing => f.write_str("no such row"),
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
        /// The last look, in words.
        last: String,
    },
    /// The cloud cannot be asked.
    #[error("cannot look at the state")]
    Cloud(#[source] Arc<Error>),
}

/// Whether the same look may succeed a moment later.
pub(super) fn is_passing(error: &Error) -> bool {
    // The cloud has answered; it is the row that is wrong.
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
