//! The state of the limits, for metrics and operators.

use std::time::Duration;

/// The state of the limit of an API, or of the account.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitReport {
    /// The action, or `account`.
    pub action: &'static str,
    pub waiting: usize,
    pub in_flight: u32,
    /// The most calls per second that the configuration permits.
    pub configured: Option<f64>,
    /// Calls per second, once a call was throttled.
    pub learned: Option<f64>,
    /// How long the API stays closed after a throttling error.
    pub closed_for: Option<Duration>,
}
