//! Rate limiting of cloud calls, just below unknown quotas.
//!
//! The cloud limits calls per account, region and API, and per account (`Throttling.User`). A quota has a window of any
//! length, or is a token bucket, and is shared with the console and other tools. No API reports it, so
//! [`RateLimiter`] adapts to throttling errors:
//!
//! * Before the first throttling error, 16 calls of an API are sent in one burst, and more after each success and over
//!   time.
//! * A throttling error closes the API. Single probes determine when it opens again: after the wait that the cloud
//!   states, otherwise with growing pauses, when a minute of the clock begins, and when another API opens.
//! * The rate is then the highest one that succeeded, the closure included, and at least 1 call/s. It grows slowly
//!   while it is used up.
//! * A configured limit ([`ConfiguredLimits`]) is never exceeded, whatever the learned rate.
//! * Until it is throttled itself, an API is assumed to have the quota of the one that was.
//!
//! Existing token buckets (`governor`, `leaky-bucket`) are not used: they pace at a fixed rate in FIFO order.
//! Adaptation and queues ordered by deadline would remain; the bucket itself is small ([`Pace`](pace::Pace)).

mod limit;
mod limiter;
mod outcome;
mod pace;
mod queue;

use std::collections::BTreeMap;

pub use limit::LimitReport;
pub use limiter::RateLimiter;
use outcome::CallOutcome;

/// The name of the limit of all calls together.
pub const ACCOUNT: &str = "account";

/// The most calls per second, by action or [`ACCOUNT`], which an operator configures for a quota that other programs of
/// the account share. An action that is missing has no configured limit.
pub type ConfiguredLimits = BTreeMap<&'static str, f64>;

/// Priority of calls that compete for one limit, highest first. Calls of a priority are sent in the order of their
/// deadlines. A lower priority always keeps a small share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Detaching a disk, which another node may be waiting for.
    Detach,
    Attach,
    /// Every other action that changes resources.
    Write,
    /// Describing resources by id, which calls in progress wait for.
    Poll,
    /// Lists, searches and background work.
    List,
}

impl Priority {
    /// The priority of an action without ids.
    #[must_use]
    pub fn for_action(action: &str) -> Self {
        match action {
            "DetachDisk" => Self::Detach,
            "AttachDisk" => Self::Attach,
            _ if action.starts_with("Describe") => Self::List,
            _ => Self::Write,
        }
    }

    fn is_read(self) -> bool {
        self >= Self::Poll
    }
}
