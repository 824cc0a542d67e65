//! Call limits as the ECS throttling page describes them: fixed windows of one minute for each
//! (region, action); who is denied in a minute stays denied until the next.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::config::ByAction;
use super::reply::Refusal;
use super::spread::until;

/// How many calls a minute are allowed. Nothing set means no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Calls of each action.
    pub per_action: Option<u32>,
    /// Calls of these actions, instead.
    pub actions: ByAction,
    /// Calls of all actions together (`Throttling.User`).
    pub user: Option<u32>,
    /// Windows or a bucket.
    pub mode: Mode,
}

/// How calls are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// By the minute of the clock.
    #[default]
    Window,
    /// A bucket that holds a minute's calls and is refilled evenly.
    Bucket,
}

/// A text that is no [`Limits`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no limit: wanted a number, ACTION=N, user=N, or mode=window|bucket")]
pub struct InvalidLimits(String);

impl FromStr for Limits {
    type Err = InvalidLimits;

    /// Reads `60,DescribeDisks=10,user=600,mode=bucket`.
    fn from_str(text: &str) -> Result<Self, InvalidLimits> {
        let mut limits = Self::default();
        for part in text.split(',').map(str::trim) {
            let refuse = || InvalidLimits(part.to_owned());
            let number = |text: &str| text.parse().map_err(|_| refuse());
            match part.split_once('=') {
                None => limits.per_action = Some(number(part)?),
                Some(("user", n)) => limits.user = Some(number(n)?),
                Some(("mode", "window")) => limits.mode = Mode::Window,
                Some(("mode", "bucket")) => limits.mode = Mode::Bucket,
                Some((action, n)) => {
                    action.parse::<Action>().map_err(|()| refuse())?;
                    limits.actions.insert(action.to_owned(), number(n)?);
                }
            }
        }
        Ok(limits)
    }
}

/// The calls that count against the limits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Throttle {
    meters: BTreeMap<String, Meter>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Meter {
    minute: i64,
    calls: u32,
    /// What is left in the bucket, in sixty-thousandths of a call, and when that was.
    level: u64,
    at_ms: i64,
}

const MINUTE_MS: i64 = 60_000;
/// A call in the unit of the bucket: so many milliseconds refill a limit of one a minute.
const CALL: u64 = 60_000;

impl Throttle {
    /// Counts a call, or refuses it.
    pub(crate) fn admit(
        &mut self,
        limits: &Limits,
        region: &str,
        action: Action,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let name = action.as_str();
        let limit = limits.actions.get(name).copied().or(limits.per_action);
        if let Some(limit) = limit {
            let key = format!("{region}/{name}");
            self.take(&key, limit, limits.mode, now).map_err(|wait| {
                // The CreateSnapshot table lists this code with 403.
                let status = if action == Action::CreateSnapshot {
                    403
                } else {
                    400
                };
                throttled(status, "Throttling", wait)
            })?;
        }
        if let Some(limit) = limits.user {
            self.take("user", limit, limits.mode, now)
                .map_err(|wait| throttled(400, "Throttling.User", wait))?;
        }
        Ok(())
    }

    fn take(&mut self, key: &str, limit: u32, mode: Mode, now: Timestamp) -> Result<(), Duration> {
        let now_ms = now.as_millisecond();
        let minute = now_ms.div_euclid(MINUTE_MS);
        let full = u64::from(limit) * CALL;
        let fresh = Meter {
            minute,
            calls: 0,
            level: full,
            at_ms: now_ms,
        };
        let meter = self.meters.entry(key.to_owned()).or_insert(fresh);
        match mode {
            Mode::Window => {
                if meter.minute != minute {
                    *meter = fresh;
                }
                if meter.calls >= limit {
                    let next = Timestamp::from_millisecond((minute + 1) * MINUTE_MS);
                    return Err(next.map_or(Duration::ZERO, |next| until(now, next)));
                }
                meter.calls += 1;
            }
            Mode::Bucket => {
                let passed = u64::try_from(now_ms - meter.at_ms).unwrap_or(0);
                meter.level = full.min(meter.level + passed * u64::from(limit));
                meter.at_ms = now_ms;
                if meter.level < CALL {
                    let missing = (CALL - meter.level) / u64::from(limit.max(1));
                    return Err(Duration::from_millis(missing));
                }
                meter.level -= CALL;
            }
        }
        Ok(())
    }
}

fn throttled(status: u16, code: &str, wait: Duration) -> Refusal {
    let mut refusal =
        Refusal::new(status, code).because("Request was denied due to user flow control.");
    refusal.wait = Some(wait);
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn code(
        throttle: &mut Throttle,
        limits: &str,
        action: Action,
        second: i64,
    ) -> Option<(u16, String)> {
        let limits = limits.parse().unwrap();
        let admitted = throttle.admit(&limits, "cn-beijing", action, at(second));
        admitted.err().map(|refusal| (refusal.status, refusal.code))
    }

    #[test]
    fn who_is_denied_in_a_minute_stays_denied_until_the_next() {
        let mut throttle = Throttle::default();
        let mut ask = |second| code(&mut throttle, "2", Action::AttachDisk, second);
        assert_eq!(ask(10), None);
        assert_eq!(ask(11), None);
        let denied = Some((400, "Throttling".to_owned()));
        assert_eq!(ask(12), denied);
        assert_eq!(ask(59), denied);
        assert_eq!(ask(60), None);
    }

    #[test]
    fn actions_are_counted_apart_and_the_account_as_a_whole() {
        let mut throttle = Throttle::default();
        let mut ask = |action| code(&mut throttle, "1,user=2", action, 0);
        assert_eq!(ask(Action::AttachDisk), None);
        assert_eq!(ask(Action::DetachDisk), None);
        assert_eq!(
            ask(Action::DescribeDisks),
            Some((400, "Throttling.User".to_owned()))
        );
    }

    #[test]
    fn create_snapshot_is_throttled_with_403() {
        let mut throttle = Throttle::default();
        let refused = code(&mut throttle, "CreateSnapshot=0", Action::CreateSnapshot, 0);
        assert_eq!(refused, Some((403, "Throttling".to_owned())));
    }

    #[test]
    fn a_denied_caller_is_told_how_long_the_minute_still_runs() {
        let mut throttle = Throttle::default();
        let limits = "0".parse().unwrap();
        let refused = throttle.admit(&limits, "r", Action::AttachDisk, at(45));
        assert_eq!(refused.unwrap_err().wait, Some(Duration::from_secs(15)));
    }

    #[test]
    fn a_bucket_is_refilled_evenly() {
        let mut throttle = Throttle::default();
        let mut ask = |second| code(&mut throttle, "2,mode=bucket", Action::AttachDisk, second);
        assert_eq!(ask(0), None);
        assert_eq!(ask(0), None);
        assert!(ask(29).is_some());
        assert_eq!(ask(30), None);
    }

    #[test]
    fn a_limit_names_a_known_action() {
        assert!("AttachDisc=3".parse::<Limits>().is_err());
    }
}
