//! What an answer, or none, tells about the limits of the cloud.

use crate::cloud::error::{Error, Kind};

/// Too many calls at once; it says nothing of how many go in a window.
pub(super) const CONCURRENT: &str = "Throttling.ConcurrentLimitExceeded";

/// What became of a call, as far as limits go.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fate {
    /// The API has answered, so no limit held it back.
    Passed,
    /// Nobody will know.
    Unknown,
    /// It never left.
    Unsent,
}

impl Fate {
    pub(super) fn of(error: Option<&Error>) -> Self {
        let Some(error) = error else {
            return Self::Passed;
        };
        let answered = error.code().is_some() || error.request_id().is_some();
        match error.kind() {
            Kind::Unreachable | Kind::Credentials => Self::Unsent,
            // Not a rate: others must end first.
            _ if error.has_code(CONCURRENT) => Self::Unknown,
            _ if answered => Self::Passed,
            _ => Self::Unknown,
        }
    }
}
