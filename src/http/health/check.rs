//! One check of `/healthz` or `/readyz`.

use std::time::Duration;

use serde::Serialize;

/// Timeout of a check; all checks run in parallel.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3);

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) ok: bool,
    /// The state and, if unhealthy, what to do.
    pub(crate) message: String,
    /// Whether the message names a limitation, although the check is ok.
    #[serde(skip)]
    pub(crate) is_limited: bool,
}

impl Check {
    pub(crate) fn new(name: &'static str, outcome: Result<String, String>) -> Self {
        let ok = outcome.is_ok();
        Self {
            name,
            ok,
            message: outcome.unwrap_or_else(|message| message),
            is_limited: false,
        }
    }
}
