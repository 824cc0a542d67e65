//! The result of a call as far as it concerns rate limits.

use std::time::Duration;

use crate::error::{Condition, Error, Kind};

#[derive(Debug, Clone)]
pub(super) enum CallOutcome {
    /// The cloud processed the call, successfully or not.
    Passed,
    Throttled {
        /// The limit of the whole account, not of the API.
        account: bool,
        /// The wait that the cloud requests.
        wait: Option<Duration>,
        error: String,
    },
    /// Too many operations in progress; this is not a rate.
    Concurrent,
    /// No response: the call may have been counted.
    Unknown,
    /// Another limit has throttled the call, so it does not count for this one.
    ThrottledElsewhere,
    /// The call never reached the cloud.
    Unsent,
}

impl CallOutcome {
    /// The outcome of a call that ended with this error, if any.
    pub(super) fn from_error(error: Option<&Error>) -> Self {
        let Some(error) = error else {
            return Self::Passed;
        };
        if error.condition() == Condition::TooManyOperations {
            return Self::Concurrent;
        }
        let has_response = error.code().is_some() || error.request_id().is_some();
        match error.kind() {
            Kind::Throttled => Self::Throttled {
                account: error.condition() == Condition::AccountThrottled,
                wait: error.retry_after().filter(|wait| !wait.is_zero()),
                error: error.to_string(),
            },
            Kind::Unreachable | Kind::Credentials => Self::Unsent,
            _ if has_response => Self::Passed,
            _ => Self::Unknown,
        }
    }
}
