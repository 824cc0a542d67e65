//! Rate limits that an operator configures, for quotas that other programs of the account share.

use std::collections::BTreeMap;

/// The name of the limit of all calls together.
pub const ACCOUNT: &str = "account";

/// The most calls per second of one action, or of all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfiguredLimit {
    /// The action, or [`ACCOUNT`].
    pub action: &'static str,
    pub calls_per_second: f64,
}

/// The most calls per second, by action or [`ACCOUNT`]. An action that is missing has no configured limit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConfiguredLimits(BTreeMap<&'static str, f64>);

impl ConfiguredLimits {
    pub(super) fn get(&self, action: &str) -> Option<f64> {
        self.0.get(action).copied()
    }
}

impl FromIterator<ConfiguredLimit> for ConfiguredLimits {
    fn from_iter<I: IntoIterator<Item = ConfiguredLimit>>(limits: I) -> Self {
        let limits = limits.into_iter();
        Self(limits.map(|limit| (limit.action, limit.calls_per_second)).collect())
    }
}
