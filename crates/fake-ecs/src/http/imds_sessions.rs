//! The tokens of the instance metadata service, and the rate of its requests.

use jiff::Timestamp;
use std::collections::BTreeMap;

/// Issued tokens and the request rate of each instance.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// Instance and expiry by token.
    pub(super) tokens: BTreeMap<String, (String, Timestamp)>,
    /// The current second and its number of requests, by instance.
    rates: BTreeMap<String, (i64, u32)>,
}

impl Sessions {
    pub(super) fn is_over(&mut self, instance: &str, rate: u32, now: Timestamp) -> bool {
        let meter = self.rates.entry(instance.to_owned()).or_default();
        if meter.0 != now.as_second() {
            *meter = (now.as_second(), 0);
        }
        meter.1 += 1;
        meter.1 > rate
    }

    pub(super) fn is_good(&mut self, token: &str, instance: &str, now: Timestamp) -> bool {
        self.tokens.retain(|_, (_, expires)| *expires > now);
        self.tokens.get(token).is_some_and(|(owner, _)| owner == instance)
    }
}
