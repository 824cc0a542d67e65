//! Fault injection: at the nth call of an action or in a percentage of calls, before or after the
//! call takes effect.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::api_error::ApiError;
use super::distribution::after;
use super::duration_text;
use super::rng::Rng;

/// Corruption of a response on its way to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseFault {
    /// The connection ends without a response.
    Reset,
    /// The JSON is truncated.
    Truncated,
    /// A status without a body.
    Empty,
    /// A proxy's 502 page.
    Html,
    /// The connection stays open without a response.
    Hang,
}

/// A fault to inject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The action, or `*` for all actions.
    pub action: String,
    /// The first call to affect, counted from 1 since the fault was configured.
    #[serde(default = "one")]
    pub from: u64,
    /// The number of consecutive calls to affect.
    #[serde(default = "one")]
    pub times: u64,
    /// Instead of `times`: the percentage of calls to affect from the first one on, drawn from the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// Instead of `times`, or together with `percent`: the period after configuration in which calls are affected.
    #[serde(
        default,
        rename = "for",
        with = "duration_text::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub lasts: Option<Duration>,
    pub kind: FaultKind,
}

/// The effect of a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// 500 `InternalError`; the call has no effect.
    InternalError,
    /// 503 `ServiceUnavailable`; the call has no effect.
    ServiceUnavailable,
    /// 500 `InternalError`, although the call took effect.
    InternalErrorAfter,
    /// The connection ends before the call takes effect.
    ResetBefore,
    /// The connection ends after the call took effect: the response is lost.
    ResetAfter,
    /// The call takes effect; the JSON of the response is truncated.
    Truncated,
    /// The call takes effect; the response body is empty.
    Empty,
    /// The call takes effect; a proxy returns 502 with an HTML page.
    Html,
    /// The call takes effect late; over HTTP also if its caller has disconnected meanwhile.
    DelayBefore(#[serde(with = "duration_text")] Duration),
    /// The call takes effect immediately and its response is late.
    DelayAfter(#[serde(with = "duration_text")] Duration),
    /// The call takes effect immediately and the response body is sent in small parts over this period.
    SlowDrip(#[serde(with = "duration_text")] Duration),
    /// `Message` of an error is null.
    NullMessage,
    /// This error; the call has no effect.
    Code { status: u16, code: String },
    /// The call takes effect without a response; the connection stays open until the caller closes it.
    Hang,
    /// A read returns 200 and no rows, as without permission. Writes are not affected.
    NoRows,
    /// The call succeeds, but the operation fails later: an attach reverts to `Available`, a detach never
    /// completes, a created disk disappears, a snapshot becomes `failed`, a change of the category fails.
    FailsLater,
}

fn one() -> u64 {
    1
}

/// The faults injected in one call.
#[derive(Debug, Clone, Default)]
pub(crate) struct InjectedFaults {
    pub(crate) error: Option<ApiError>,
    pub(crate) error_after: Option<ApiError>,
    pub(crate) fault_before: Option<ResponseFault>,
    pub(crate) response_fault: Option<ResponseFault>,
    pub(crate) delay_before: Duration,
    pub(crate) delay_after: Duration,
    pub(crate) drip: Duration,
    pub(crate) without_message: bool,
    pub(crate) fails_later: bool,
    pub(crate) no_rows: bool,
}

/// Counts calls for each fault and injects the faults that apply.
#[derive(Debug, Clone)]
pub(crate) struct FaultInjector {
    since: Timestamp,
    calls: BTreeMap<usize, u64>,
}

impl FaultInjector {
    /// Counts calls and time from now on: the list of faults has changed.
    pub(crate) fn starting(now: Timestamp) -> Self {
        Self {
            since: now,
            calls: BTreeMap::new(),
        }
    }

    /// Counts the call and returns the faults to inject.
    pub(crate) fn inject(&mut self, faults: &[Fault], action: Action, now: Timestamp, rng: &mut Rng) -> InjectedFaults {
        let mut injected = InjectedFaults::default();
        for (index, fault) in faults.iter().enumerate() {
            if fault.action != "*" && fault.action != action.as_str() {
                continue;
            }
            let nth = self.calls.entry(index).or_default();
            *nth += 1;
            let over = fault.lasts.is_some_and(|lasts| now >= after(self.since, lasts));
            let struck = match (fault.percent, fault.lasts) {
                (Some(percent), _) => *nth >= fault.from && rng.percent(percent),
                (None, Some(_)) => *nth >= fault.from,
                (None, None) => (fault.from..fault.from.saturating_add(fault.times)).contains(nth),
            };
            if struck && !over {
                injected.add(&fault.kind);
            }
        }
        injected
    }
}

impl InjectedFaults {
    fn add(&mut self, kind: &FaultKind) {
        match kind {
            FaultKind::InternalError => self.error = Some(ApiError::new(500, "InternalError")),
            FaultKind::ServiceUnavailable => {
                self.error = Some(ApiError::new(503, "ServiceUnavailable"));
            }
            FaultKind::InternalErrorAfter => {
                self.error_after = Some(ApiError::new(500, "InternalError"));
            }
            FaultKind::ResetBefore => self.fault_before = Some(ResponseFault::Reset),
            FaultKind::ResetAfter => self.response_fault = Some(ResponseFault::Reset),
            FaultKind::Truncated => self.response_fault = Some(ResponseFault::Truncated),
            FaultKind::Empty => self.response_fault = Some(ResponseFault::Empty),
            FaultKind::Html => self.response_fault = Some(ResponseFault::Html),
            FaultKind::DelayBefore(delay) => self.delay_before += *delay,
            FaultKind::DelayAfter(delay) => self.delay_after += *delay,
            FaultKind::SlowDrip(whole) => self.drip += *whole,
            FaultKind::NullMessage => self.without_message = true,
            FaultKind::Code { status, code } => {
                self.error = Some(ApiError::new(*status, code.as_str()));
            }
            FaultKind::Hang => self.response_fault = Some(ResponseFault::Hang),
            FaultKind::NoRows => self.no_rows = true,
            FaultKind::FailsLater => self.fails_later = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn fault(action: &str, from: u64, times: u64) -> Fault {
        Fault {
            action: action.to_owned(),
            from,
            times,
            percent: None,
            lasts: None,
            kind: FaultKind::InternalError,
        }
    }

    #[test]
    fn a_fault_affects_its_action_from_the_nth_call_on() {
        let faults = [fault("AttachDisk", 2, 2)];
        let mut counters = FaultInjector::starting(NOW);
        let mut rng = Rng::new(1);
        let mut struck = |action| {
            let injected = counters.inject(&faults, action, NOW, &mut rng);
            injected.error.is_some()
        };
        assert!(!struck(Action::AttachDisk));
        assert!(!struck(Action::DetachDisk));
        assert!(struck(Action::AttachDisk));
        assert!(struck(Action::AttachDisk));
        assert!(!struck(Action::AttachDisk));
    }

    #[test]
    fn a_star_affects_every_action() {
        let faults = [fault("*", 1, 2)];
        let (mut counters, mut rng) = (FaultInjector::starting(NOW), Rng::new(1));
        let mut struck = |action| {
            let injected = counters.inject(&faults, action, NOW, &mut rng);
            injected.error.is_some()
        };
        assert!(struck(Action::CreateDisk));
        assert!(struck(Action::DeleteDisk));
        assert!(!struck(Action::DeleteDisk));
    }

    #[test]
    fn a_percentage_affects_that_share_of_calls() {
        let faults = [Fault {
            percent: Some(20),
            ..fault("*", 101, 1)
        }];
        let (mut counters, mut rng) = (FaultInjector::starting(NOW), Rng::new(1));
        let mut struck = |_: &u32| {
            let injected = counters.inject(&faults, Action::CreateDisk, NOW, &mut rng);
            injected.error.is_some()
        };
        assert_eq!((0..100).filter(&mut struck).count(), 0);
        let count = (0..1000).filter(&mut struck).count();
        assert!((150..250).contains(&count), "{count}");
    }

    #[test]
    fn a_fault_can_be_limited_in_time_and_to_a_percentage() {
        let text = r#"[{"action":"DescribeDisks","for":"45s","kind":"no-rows"},
            {"action":"DescribeDisks","for":"45s","percent":50,"kind":"hang"}]"#;
        let faults: Vec<Fault> = serde_json::from_str(text).unwrap();
        let (mut counters, mut rng) = (FaultInjector::starting(NOW), Rng::new(1));
        let mut struck = |second| {
            let now = after(NOW, Duration::from_secs(second));
            let injected = counters.inject(&faults, Action::DescribeDisks, now, &mut rng);
            (injected.no_rows, injected.response_fault.is_some())
        };
        let outcomes: Vec<_> = (0..45).map(&mut struck).collect();
        assert!(outcomes.iter().all(|(no_rows, _)| *no_rows));
        let hung = outcomes.iter().filter(|(_, hung)| *hung).count();
        assert!((10..35).contains(&hung), "{hung}");
        assert!((45..145).all(|second| struck(second) == (false, false)));
        let written = serde_json::to_string(&faults).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Fault>>(&written).unwrap(), faults);
    }

    #[test]
    fn a_fault_in_json_has_defaults() {
        let read: Fault = serde_json::from_str(r#"{"action":"CreateDisk","kind":"reset-after"}"#).unwrap();
        assert_eq!((read.from, read.times), (1, 1));
        assert_eq!(read.kind, FaultKind::ResetAfter);
        let late = r#"{"action":"*","kind":{"delay-after":"2s"}}"#;
        let late: Fault = serde_json::from_str(late).unwrap();
        assert_eq!(late.kind, FaultKind::DelayAfter(Duration::from_secs(2)));
    }
}
