//! Rate limiting of cloud calls: runs just below quotas that are not known in advance.
//!
//! The cloud limits calls per account, region and API, and per account (`Throttling.User`). A quota
//! is `N/1(s)` or `N/60(s)`, may be a token bucket, and is shared with the console and other tools.
//! No API reports it, so that [`RateLimiter`] learns it from throttling errors:
//!
//! * Before the first throttling error an API takes 16 calls at once, one more for each that passes, and more as time passes.
//! * A throttling error closes the API. Single probes find out when it opens again: after the time
//!   that the cloud states, else after one second, with growing pauses, and after the minute ends.
//! * An API that opens again within the minute has a quota per second: calls are evenly paced just
//!   below the rate that was successful. Otherwise the successful calls of the minute are its budget.
//! * Until it is throttled itself, an API is assumed to have the quota of the one that was.
//!
//! Published token buckets (`governor`, `leaky-bucket`) were considered: they pace at a rate that is
//! known when they are built, in first-come order. Learning, clock windows and queues ordered by
//! deadline would remain; the bucket itself is ten lines ([`Limit`](limit::Limit)).

mod limit;
mod limiter;
mod outcome;
mod queue;
mod quota;
mod time;

pub use limiter::RateLimiter;
use outcome::CallOutcome;

/// Priority of a call where calls compete for one limit, highest first. Calls of a class are sent in
/// the order of their deadlines. A lower class always keeps a small share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Detaching a disk, which another node may be waiting for.
    Detach,
    Attach,
    /// Any other change.
    Order,
    /// Describing resources by id, which calls in progress wait for.
    Poll,
    /// Lists, searches and background work.
    List,
}

impl Class {
    /// The class of an action, unless its request says more.
    #[must_use]
    pub fn of(action: &str) -> Self {
        match action {
            "DetachDisk" => Self::Detach,
            "AttachDisk" => Self::Attach,
            _ if action.starts_with("Describe") => Self::List,
            _ => Self::Order,
        }
    }

    /// The class of a description: a poll if it names ids, otherwise a list.
    #[must_use]
    pub fn of_ids<T>(ids: Option<&T>) -> Self {
        ids.map_or(Self::List, |_| Self::Poll)
    }

    fn is_read(self) -> bool {
        self >= Self::Poll
    }
}
