//! API throttling as the ECS documents describe it: fixed windows of the clock for each region and
//! action. A caller that is denied in a window stays denied until the next one.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::api_error::ApiError;
use super::call_quota::Quota;
use super::distribution::until;
use super::invalid_text::InvalidText;

const EXPECTED: &str = "a limit: expected a QUOTA such as 60 (a minute) or 10/1s, ACTION=QUOTA, user=QUOTA, \
                        mode=window|bucket, burst=N, or headers=on|off";

/// Call quotas. Unset means unlimited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Quota of each action.
    pub per_action: Option<Quota>,
    /// Quotas of individual actions, instead of `per_action`.
    pub actions: BTreeMap<String, Quota>,
    /// Quota of all actions together (`Throttling.User`).
    pub user: Option<Quota>,
    pub mode: Mode,
    /// Capacity of a bucket; unset, the calls of its quota.
    pub burst: Option<u32>,
    /// Whether a throttled response contains the time to wait (`x-ratelimit-user-api`).
    pub headers: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            per_action: None,
            actions: BTreeMap::new(),
            user: None,
            mode: Mode::Window,
            burst: None,
            headers: true,
        }
    }
}

/// How calls are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// In fixed windows of the clock: for `10/1s`, each second is a window.
    #[default]
    Window,
    /// In a token bucket with a constant refill rate.
    Bucket,
}

impl FromStr for Limits {
    type Err = InvalidText;

    /// Parses `60,DescribeDisks=5/1s,user=600,mode=bucket,burst=20,headers=off`.
    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let mut limits = Self::default();
        for part in text.split(',').map(str::trim) {
            let invalid = || InvalidText(part.to_owned(), EXPECTED);
            let quota = |text: &str| text.parse::<Quota>().map_err(|_| invalid());
            match part.split_once('=') {
                None => limits.per_action = Some(quota(part)?),
                Some(("user", text)) => limits.user = Some(quota(text)?),
                Some(("mode", "window")) => limits.mode = Mode::Window,
                Some(("mode", "bucket")) => limits.mode = Mode::Bucket,
                Some(("burst", n)) => limits.burst = Some(n.parse().map_err(|_| invalid())?),
                Some(("headers", "on")) => limits.headers = true,
                Some(("headers", "off")) => limits.headers = false,
                Some((action, text)) => {
                    action.parse::<Action>().map_err(|()| invalid())?;
                    limits.actions.insert(action.to_owned(), quota(text)?);
                }
            }
        }
        Ok(limits)
    }
}

/// The counters of calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Throttle {
    meters: BTreeMap<String, Meter>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Meter {
    window: i64,
    calls: u32,
    /// The content of the bucket at `at_ms`. One call costs the quota's period in milliseconds, and
    /// each millisecond adds the quota's calls.
    level: u64,
    at_ms: i64,
}

impl Throttle {
    /// Counts a call.
    ///
    /// # Errors
    /// If the call exceeds its quota.
    pub(crate) fn admit(
        &mut self,
        limits: &Limits,
        region: &str,
        action: Action,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        let name = action.as_str();
        let limit = limits.actions.get(name).copied().or(limits.per_action);
        if let Some(limit) = limit {
            let key = format!("{region}/{name}");
            self.take(&key, limit, limits, now).map_err(|wait| {
                // The CreateSnapshot table lists this code with 403.
                let status = if action == Action::CreateSnapshot { 403 } else { 400 };
                throttled(status, "Throttling", limits.headers.then_some(wait))
            })?;
        }
        if let Some(limit) = limits.user {
            self.take("user", limit, limits, now)
                .map_err(|wait| throttled(400, "Throttling.User", limits.headers.then_some(wait)))?;
        }
        Ok(())
    }

    fn take(&mut self, key: &str, quota: Quota, limits: &Limits, now: Timestamp) -> Result<(), Duration> {
        let now_ms = now.as_millisecond();
        let period = i64::from(quota.period_ms());
        let call = u64::from(quota.period_ms());
        let window = now_ms.div_euclid(period);
        let full = u64::from(limits.burst.unwrap_or(quota.calls)) * call;
        let fresh = Meter {
            window,
            calls: 0,
            level: full,
            at_ms: now_ms,
        };
        let meter = self.meters.entry(key.to_owned()).or_insert(fresh);
        match limits.mode {
            Mode::Window => {
                if meter.window != window {
                    *meter = fresh;
                }
                if meter.calls >= quota.calls {
                    let next = Timestamp::from_millisecond((window + 1) * period);
                    return Err(next.map_or(Duration::ZERO, |next| until(now, next)));
                }
                meter.calls += 1;
            }
            Mode::Bucket => {
                let passed = u64::try_from(now_ms - meter.at_ms).unwrap_or(0);
                meter.level = full.min(meter.level + passed * u64::from(quota.calls));
                meter.at_ms = now_ms;
                if meter.level < call {
                    let missing = (call - meter.level).div_ceil(u64::from(quota.calls.max(1)));
                    return Err(Duration::from_millis(missing));
                }
                meter.level -= call;
            }
        }
        Ok(())
    }
}

fn throttled(status: u16, code: &str, wait: Option<Duration>) -> ApiError {
    let mut error = ApiError::new(status, code).with_message("Request was denied due to user flow control.");
    error.wait = wait;
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(ms).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn code(throttle: &mut Throttle, limits: &str, action: Action, second: i64) -> Option<(u16, String)> {
        let limits = limits.parse().unwrap();
        let admitted = throttle.admit(&limits, "cn-beijing", action, at(second));
        admitted.err().map(|error| (error.status, error.code))
    }

    #[test]
    fn a_caller_denied_in_a_minute_stays_denied_until_the_next() {
        let mut throttle = Throttle::default();
        let mut call = |second| code(&mut throttle, "2", Action::AttachDisk, second);
        assert_eq!(call(10), None);
        assert_eq!(call(11), None);
        let denied = Some((400, "Throttling".to_owned()));
        assert_eq!(call(12), denied);
        assert_eq!(call(59), denied);
        assert_eq!(call(60), None);
    }

    #[test]
    fn actions_are_counted_separately_and_for_the_account() {
        let mut throttle = Throttle::default();
        let mut call = |action| code(&mut throttle, "1,user=2", action, 0);
        assert_eq!(call(Action::AttachDisk), None);
        assert_eq!(call(Action::DetachDisk), None);
        assert_eq!(call(Action::DescribeDisks), Some((400, "Throttling.User".to_owned())));
    }

    #[test]
    fn create_snapshot_is_throttled_with_403() {
        let mut throttle = Throttle::default();
        let rejected = code(&mut throttle, "CreateSnapshot=0", Action::CreateSnapshot, 0);
        assert_eq!(rejected, Some((403, "Throttling".to_owned())));
    }

    #[test]
    fn a_throttled_error_contains_the_rest_of_the_minute() {
        let mut throttle = Throttle::default();
        let limits = "0".parse().unwrap();
        let rejected = throttle.admit(&limits, "r", Action::AttachDisk, at(45));
        assert_eq!(rejected.unwrap_err().wait, Some(Duration::from_secs(15)));
    }

    #[test]
    fn a_bucket_is_refilled_evenly() {
        let mut throttle = Throttle::default();
        let mut call = |second| code(&mut throttle, "2,mode=bucket", Action::AttachDisk, second);
        assert_eq!(call(0), None);
        assert_eq!(call(0), None);
        assert!(call(29).is_some());
        assert_eq!(call(30), None);
    }

    #[test]
    fn a_second_window_reopens_with_the_next_second_of_the_clock() {
        let mut throttle = Throttle::default();
        let limits = "60,AttachDisk=2/1s".parse().unwrap();
        let mut call = |ms| {
            let admitted = throttle.admit(&limits, "r", Action::AttachDisk, at_ms(ms));
            admitted.err().map(|error| error.wait.unwrap().as_millis())
        };
        assert_eq!(call(5_900), None);
        assert_eq!(call(5_950), None);
        assert_eq!(call(5_960), Some(40));
        assert_eq!(call(6_000), None);
        assert_eq!(call(6_001), None);
        assert_eq!(call(6_002), Some(998));
    }

    #[test]
    fn a_bucket_holds_its_burst_and_no_more() {
        let mut throttle = Throttle::default();
        let limits = "10/1s,mode=bucket,burst=3".parse().unwrap();
        let mut call = |ms| {
            let admitted = throttle.admit(&limits, "r", Action::AttachDisk, at_ms(ms));
            admitted.err().map(|error| error.wait.unwrap().as_millis())
        };
        assert_eq!([call(0), call(0), call(0), call(0)], [None, None, None, Some(100)]);
        assert_eq!(call(99), Some(1));
        assert_eq!(call(100), None);
        // An hour later the bucket is full, which is three calls.
        let later = 3_600_000;
        assert_eq!([call(later), call(later), call(later)], [None; 3]);
        assert_eq!(call(later), Some(100));
    }

    #[test]
    fn without_headers_a_throttled_error_has_no_retry_delay() {
        let mut throttle = Throttle::default();
        let limits = "0,user=0,headers=off".parse().unwrap();
        let rejected = throttle.admit(&limits, "r", Action::AttachDisk, at(45));
        assert_eq!(rejected.unwrap_err().wait, None);
    }

    #[test]
    fn a_limit_requires_a_known_action() {
        assert!("AttachDisc=3".parse::<Limits>().is_err());
    }
}
