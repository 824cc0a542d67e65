//! What goes wrong on purpose: at the nth call of an action, or at so many in a hundred, before or
//! after it took effect.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::ids::Rng;
use super::reply::{Mangle, Refusal};
use super::spread::after;
use super::text;

/// Something that goes wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The action, or `*` for every one.
    pub action: String,
    /// The first call that it strikes, counted from 1 since the fault was set.
    #[serde(default = "one")]
    pub from: u64,
    /// How many calls in a row it strikes.
    #[serde(default = "one")]
    pub times: u64,
    /// Instead of `times`: it strikes so many in a hundred of the calls from the first on, drawn
    /// from the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// Instead of `times`, or together with `percent`: it strikes for so long after the fault was
    /// set, and then no more.
    #[serde(
        default,
        rename = "for",
        with = "text::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub lasts: Option<Duration>,
    /// What happens.
    pub kind: FaultKind,
}

/// What happens to a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// 500 `InternalError`; nothing took effect.
    InternalError,
    /// 503 `ServiceUnavailable`; nothing took effect.
    ServiceUnavailable,
    /// 500 `InternalError`, though the call took effect.
    InternalErrorAfter,
    /// The connection ends before the call takes effect.
    ResetBefore,
    /// The connection ends after the call took effect: the lost answer.
    ResetAfter,
    /// The call took effect; its JSON stops in the middle.
    Truncated,
    /// The call took effect; its body is empty.
    Empty,
    /// The call took effect; a proxy answers 502 with a page of HTML.
    Html,
    /// The call takes effect late; over HTTP also when its caller has hung up meanwhile.
    DelayBefore(#[serde(with = "text")] Duration),
    /// The call takes effect at once and its answer is late.
    DelayAfter(#[serde(with = "text")] Duration),
    /// The call takes effect at once and its answer comes bit by bit, over so long a time.
    SlowDrip(#[serde(with = "text")] Duration),
    /// An error answer has no words (`Message` is null).
    NullMessage,
    /// This error; nothing took effect.
    Code {
        /// The HTTP status.
        status: u16,
        /// The code.
        code: String,
    },
    /// The call takes effect and is never answered; the connection stays open until the caller
    /// closes it.
    Hang,
    /// A read returns 200 and no rows, as it does without permission. Writes are not struck.
    NoRows,
    /// The call is accepted, but the operation fails later: an attach falls back to `Available`, a
    /// detach never ends, a created disk disappears, a snapshot becomes `failed`, a change of the
    /// category fails.
    FailsLater,
}

fn one() -> u64 {
    1
}

/// What strikes one call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Strike {
    pub(crate) refusal: Option<Refusal>,
    pub(crate) refusal_after: Option<Refusal>,
    pub(crate) mangle_before: Option<Mangle>,
    pub(crate) mangle: Option<Mangle>,
    pub(crate) delay_before: Duration,
    pub(crate) delay_after: Duration,
    pub(crate) drip: Duration,
    pub(crate) speechless: bool,
    pub(crate) fails_later: bool,
    pub(crate) no_rows: bool,
}

/// Counts calls for each fault.
#[derive(Debug, Clone)]
pub(crate) struct FaultCounters {
    since: Timestamp,
    calls: BTreeMap<usize, u64>,
}

impl FaultCounters {
    /// Counts calls and time from now on: the list of faults was set.
    pub(crate) fn starting(now: Timestamp) -> Self {
        Self {
            since: now,
            calls: BTreeMap::new(),
        }
    }

    /// Counts the call and returns what strikes it.
    pub(crate) fn strike(
        &mut self,
        faults: &[Fault],
        action: Action,
        now: Timestamp,
        rng: &mut Rng,
    ) -> Strike {
        let mut strike = Strike::default();
        for (index, fault) in faults.iter().enumerate() {
            if fault.action != "*" && fault.action != action.as_str() {
                continue;
            }
            let nth = self.calls.entry(index).or_default();
            *nth += 1;
            let over = fault
                .lasts
                .is_some_and(|lasts| now >= after(self.since, lasts));
            let struck = match (fault.percent, fault.lasts) {
                (Some(percent), _) => *nth >= fault.from && rng.percent(percent),
                (None, Some(_)) => *nth >= fault.from,
                (None, None) => (fault.from..fault.from.saturating_add(fault.times)).contains(nth),
            };
            if struck && !over {
                strike.add(&fault.kind);
            }
        }
        strike
    }
}

impl Strike {
    fn add(&mut self, kind: &FaultKind) {
        match kind {
            FaultKind::InternalError => self.refusal = Some(Refusal::new(500, "InternalError")),
            FaultKind::ServiceUnavailable => {
                self.refusal = Some(Refusal::new(503, "ServiceUnavailable"));
            }
            FaultKind::InternalErrorAfter => {
                self.refusal_after = Some(Refusal::new(500, "InternalError"));
            }
            FaultKind::ResetBefore => self.mangle_before = Some(Mangle::Reset),
            FaultKind::ResetAfter => self.mangle = Some(Mangle::Reset),
            FaultKind::Truncated => self.mangle = Some(Mangle::Truncated),
            FaultKind::Empty => self.mangle = Some(Mangle::Empty),
            FaultKind::Html => self.mangle = Some(Mangle::Html),
            FaultKind::DelayBefore(delay) => self.delay_before += *delay,
            FaultKind::DelayAfter(delay) => self.delay_after += *delay,
            FaultKind::SlowDrip(whole) => self.drip += *whole,
            FaultKind::NullMessage => self.speechless = true,
            FaultKind::Code { status, code } => {
                self.refusal = Some(Refusal::new(*status, code.as_str()));
            }
            FaultKind::Hang => self.mangle = Some(Mangle::Hang),
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
    fn a_fault_strikes_its_action_from_the_nth_call_so_many_times() {
        let faults = [fault("AttachDisk", 2, 2)];
        let mut counters = FaultCounters::starting(NOW);
        let mut rng = Rng::new(1);
        let mut struck = |action| {
            let strike = counters.strike(&faults, action, NOW, &mut rng);
            strike.refusal.is_some()
        };
        assert!(!struck(Action::AttachDisk));
        assert!(!struck(Action::DetachDisk));
        assert!(struck(Action::AttachDisk));
        assert!(struck(Action::AttachDisk));
        assert!(!struck(Action::AttachDisk));
    }

    #[test]
    fn a_star_strikes_every_action() {
        let faults = [fault("*", 1, 2)];
        let (mut counters, mut rng) = (FaultCounters::starting(NOW), Rng::new(1));
        let mut struck = |action| {
            let strike = counters.strike(&faults, action, NOW, &mut rng);
            strike.refusal.is_some()
        };
        assert!(struck(Action::CreateDisk));
        assert!(struck(Action::DeleteDisk));
        assert!(!struck(Action::DeleteDisk));
    }

    #[test]
    fn a_share_strikes_so_many_in_a_hundred_from_the_first_on() {
        let faults = [Fault {
            percent: Some(20),
            ..fault("*", 101, 1)
        }];
        let (mut counters, mut rng) = (FaultCounters::starting(NOW), Rng::new(1));
        let mut struck = |_: &u32| {
            let strike = counters.strike(&faults, Action::CreateDisk, NOW, &mut rng);
            strike.refusal.is_some()
        };
        assert_eq!((0..100).filter(&mut struck).count(), 0);
        let count = (0..1000).filter(&mut struck).count();
        assert!((150..250).contains(&count), "{count}");
    }

    #[test]
    fn a_fault_may_last_for_a_time_and_strike_a_share_of_it() {
        let text = r#"[{"action":"DescribeDisks","for":"45s","kind":"no-rows"},
            {"action":"DescribeDisks","for":"45s","percent":50,"kind":"hang"}]"#;
        let faults: Vec<Fault> = serde_json::from_str(text).unwrap();
        let (mut counters, mut rng) = (FaultCounters::starting(NOW), Rng::new(1));
        let mut struck = |second| {
            let now = after(NOW, Duration::from_secs(second));
            let strike = counters.strike(&faults, Action::DescribeDisks, now, &mut rng);
            (strike.no_rows, strike.mangle.is_some())
        };
        let outcomes: Vec<_> = (0..45).map(&mut struck).collect();
        assert!(outcomes.iter().all(|(no_rows, _)| *no_rows));
        let hung = outcomes.iter().filter(|(_, hung)| *hung).count();
        assert!((10..35).contains(&hung), "{hung}");
        assert!((45..145).all(|second| struck(second) == (false, false)));
        let written = serde_json::to_string(&faults).unwrap();
        assert_eq!(
            serde_json::from_str::<Vec<Fault>>(&written).unwrap(),
            faults
        );
    }

    #[test]
    fn a_fault_is_read_from_json_with_its_defaults() {
        let read: Fault =
            serde_json::from_str(r#"{"action":"CreateDisk","kind":"reset-after"}"#).unwrap();
        assert_eq!((read.from, read.times), (1, 1));
        assert_eq!(read.kind, FaultKind::ResetAfter);
        let late = r#"{"action":"*","kind":{"delay-after":"2s"}}"#;
        let late: Fault = serde_json::from_str(late).unwrap();
        assert_eq!(late.kind, FaultKind::DelayAfter(Duration::from_secs(2)));
    }
}
