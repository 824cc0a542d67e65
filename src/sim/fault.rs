//! What goes wrong on purpose: at the nth call of an action, or at so many in a hundred, before or
//! after it took effect.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::action::Action;
use super::config::text;
use super::ids::Rng;
use super::reply::{Mangle, Refusal};

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
}

/// Counts calls for each fault.
#[derive(Debug, Clone, Default)]
pub(crate) struct FaultCounters(BTreeMap<usize, u64>);

impl FaultCounters {
    /// Starts to count anew, after the list of faults has changed.
    pub(crate) fn reset(&mut self) {
        self.0.clear();
    }

    /// Counts the call and tells what strikes it.
    pub(crate) fn strike(&mut self, faults: &[Fault], action: Action, rng: &mut Rng) -> Strike {
        let mut strike = Strike::default();
        for (index, fault) in faults.iter().enumerate() {
            if fault.action != "*" && fault.action != action.as_str() {
                continue;
            }
            let nth = self.0.entry(index).or_default();
            *nth += 1;
            let struck = match fault.percent {
                Some(percent) => *nth >= fault.from && rng.percent(percent),
                None => (fault.from..fault.from.saturating_add(fault.times)).contains(nth),
            };
            if struck {
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
            FaultKind::FailsLater => self.fails_later = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(action: &str, from: u64, times: u64) -> Fault {
        Fault {
            action: action.to_owned(),
            from,
            times,
            percent: None,
            kind: FaultKind::InternalError,
        }
    }

    #[test]
    fn a_fault_strikes_its_action_from_the_nth_call_so_many_times() {
        let faults = [fault("AttachDisk", 2, 2)];
        let mut counters = FaultCounters::default();
        let mut rng = Rng::new(1);
        let mut struck = |action| {
            let strike = counters.strike(&faults, action, &mut rng);
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
        let (mut counters, mut rng) = (FaultCounters::default(), Rng::new(1));
        let mut struck = |action| {
            let strike = counters.strike(&faults, action, &mut rng);
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
        let (mut counters, mut rng) = (FaultCounters::default(), Rng::new(1));
        let mut struck = |_: &u32| {
            let strike = counters.strike(&faults, Action::CreateDisk, &mut rng);
            strike.refusal.is_some()
        };
        assert_eq!((0..100).filter(&mut struck).count(), 0);
        let count = (0..1000).filter(&mut struck).count();
        assert!((150..250).contains(&count), "{count}");
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
