//! Call quotas in the notation of Quota Center.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::invalid_text::InvalidText;

const EXPECTED: &str = "a quota: expected calls per minute, or CALLS/PERIOD such as 10/1s";

/// Calls in each window of a period: `10/1s`, `200/60s`; `60` is 60 a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "String")]
pub struct Quota {
    pub calls: u32,
    /// Whole seconds, not zero.
    pub period: Duration,
}

const MINUTE: Duration = Duration::from_mins(1);
/// Longest period: the counters are in milliseconds.
const DAY: Duration = Duration::from_hours(24);

/// A quota in JSON: a number or a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Calls(u32),
    Text(String),
}

impl Quota {
    /// A quota of `calls` per minute.
    #[must_use]
    pub fn a_minute(calls: u32) -> Self {
        Self { calls, period: MINUTE }
    }

    pub(crate) fn period_ms(self) -> u32 {
        u32::try_from(self.period.as_millis()).unwrap_or(u32::MAX)
    }
}

impl FromStr for Quota {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let invalid = || InvalidText(text.to_owned(), EXPECTED);
        let (calls, period) = match text.split_once('/') {
            None => (text, MINUTE),
            Some((calls, period)) => {
                let period = humantime::parse_duration(period).map_err(|_| invalid())?;
                (calls, period)
            }
        };
        let whole = period.subsec_nanos() == 0 && !period.is_zero() && period <= DAY;
        let calls = calls.parse().map_err(|_| invalid())?;
        whole.then_some(Self { calls, period }).ok_or_else(invalid)
    }
}

impl TryFrom<Text> for Quota {
    type Error = InvalidText;

    fn try_from(text: Text) -> Result<Self, InvalidText> {
        match text {
            Text::Calls(calls) => Ok(Self::a_minute(calls)),
            Text::Text(text) => text.parse(),
        }
    }
}

impl From<Quota> for String {
    fn from(quota: Quota) -> Self {
        quota.to_string()
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}s", self.calls, self.period.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_has_the_notation_of_quota_center() {
        for (text, calls, seconds) in [("10/1s", 10, 1), ("200/60s", 200, 60), ("7", 7, 60)] {
            let quota: Quota = text.parse().unwrap();
            assert_eq!((quota.calls, quota.period.as_secs()), (calls, seconds));
            assert_eq!(quota.to_string().parse::<Quota>().unwrap(), quota);
        }
        for text in ["10/0s", "10/500ms", "x/1s", "10/", "-1", "1/2d"] {
            assert!(text.parse::<Quota>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_quota_in_json_is_a_string_or_calls_per_minute() {
        let read = |json: &str| serde_json::from_str::<Quota>(json).unwrap();
        assert_eq!(read("3"), Quota::a_minute(3));
        assert_eq!(read("\"5/1s\"").period, Duration::from_secs(1));
        let written = serde_json::to_string(&Quota::a_minute(3)).unwrap();
        assert_eq!(written, "\"3/60s\"");
    }
}
