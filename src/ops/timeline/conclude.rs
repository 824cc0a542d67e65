//! The state of a volume for an operator: why it waits, and what to do.

use super::advice;
use super::entry::{Entry, Timeline};
use super::history::{CallRecord, StepRecord};
use super::obstacle::{one_line, or_empty};
use crate::base::Phase;
use crate::cluster::volume_history::VolumeEvent;
use crate::model::Failure;
use crate::model::health::{HEALTHY_AGAIN, UNHEALTHY};

/// Seconds after which a running step is worth advice.
const LONG: i64 = 10;

/// Reasons of events that state that something is awaited. kube-controller-manager repeats them after the cause.
const WAITING: [&str; 4] = [
    "ExternalProvisioning",
    "Provisioning",
    "WaitForFirstConsumer",
    "WaitForPodScheduled",
];

/// What a running step means; actions of the cloud are named as such.
pub fn describe(step: &str) -> String {
    match advice::phase(step) {
        Some(phase) => phase.describe().to_owned(),
        None => format!("waiting for the response to {step}"),
    }
}

impl Timeline {
    /// The conclusion for the operator, one sentence or more per line. The cause is first.
    pub(super) fn conclusion(&self) -> String {
        let mut lines = self.obstacles.clone();
        lines.extend(self.unhealthy());
        lines.extend(self.pending());
        if lines.is_empty() {
            lines.push(self.nothing_pending());
        }
        lines.join("\n")
    }

    /// The calls with their sources, the oldest first.
    pub(super) fn calls(&self) -> impl DoubleEndedIterator<Item = (&str, &CallRecord)> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Call { source, call } => Some((source.as_str(), call)),
            Entry::Event(_) | Entry::Attachment(_) => None,
        })
    }

    /// The failures, the running calls, or what Kubernetes waits for.
    fn pending(&self) -> Vec<String> {
        let failures = self.unresolved().into_iter();
        let mut lines: Vec<_> = failures.map(|(source, call)| failed(source, call)).collect();
        let running = self.calls().rev().filter(|(_, call)| call.is_running());
        lines.extend(running.map(|(source, call)| self.running(source, call)));
        if lines.is_empty() {
            lines.extend(self.awaited());
        }
        lines
    }

    fn running(&self, source: &str, call: &CallRecord) -> String {
        let seconds = self.now.duration_since(call.started).as_secs().max(0);
        let method = &call.method;
        let Some(step) = call.current_step() else {
            return format!("{method} on {source} has been running for {seconds} s.");
        };
        let name = &step.name;
        let what = match last_action(call) {
            Some(action) if name == Phase::Poll.as_str() => {
                format!("waiting for the cloud to finish {}", action.name)
            }
            _ => describe(name),
        };
        let refused = call.steps.iter().rfind(|step| step.code.is_some());
        let refused = refused.map_or_else(String::new, |step| {
            let code = step.code.as_deref().unwrap_or_default();
            format!(", after the cloud responded to {} with {code}", step.name)
        });
        let advice = or_empty(" ", advice::for_step(name).filter(|_| seconds >= LONG));
        format!("{method} on {source} has been running for {seconds} s: {what} ({name}){refused}.{advice}")
    }

    /// The last warning of the node plugin about the health of the volume, unless it has recovered or was unmounted.
    fn unhealthy(&self) -> Option<String> {
        let (source, note) = self.calls().rev().find_map(|(source, call)| {
            let is_unstaged = call.method == "NodeUnstageVolume" && !call.is_running();
            let is_health = |note: &&String| note.starts_with(UNHEALTHY) || note.starts_with(HEALTHY_AGAIN);
            let of_health = call.notes.iter().rfind(is_health);
            match of_health {
                Some(note) => Some((source, note.as_str())),
                None if is_unstaged && !call.failed() => Some((source, "")),
                None => None,
            }
        })?;
        note.starts_with(UNHEALTHY)
            .then(|| format!("On {source}, {}", one_line(note)))
    }

    /// The last warning after the last success, or else what is awaited.
    fn awaited(&self) -> Option<String> {
        let mut awaited = None;
        for entry in self.entries.iter().rev() {
            match entry {
                Entry::Event(event) if event.is_warning => return Some(reported(event)),
                Entry::Event(event) if WAITING.contains(&event.reason.as_str()) => {
                    awaited = awaited.or_else(|| Some(reported(event)));
                }
                Entry::Attachment(attachment) if !attachment.is_attached() => {
                    let state = one_line(&attachment.state);
                    return Some(format!("The VolumeAttachment to {}: {state}.", attachment.node));
                }
                Entry::Event(_) | Entry::Attachment(_) | Entry::Call { .. } => break,
            }
        }
        // It only repeats that the volume waits.
        awaited.filter(|_| self.obstacles.is_empty())
    }

    fn nothing_pending(&self) -> String {
        match self.calls().next_back() {
            Some((source, call)) => {
                format!("The last call, {} on {source}, succeeded.", call.method)
            }
            None if !self.unavailable.is_empty() => {
                "No conclusion: not all sources could be read, and the others have no entry.".to_owned()
            }
            None => "Nothing is recorded about the volume in the sources that were read.".to_owned(),
        }
    }
}

/// The last call of the cloud that changes something.
fn last_action(call: &CallRecord) -> Option<&StepRecord> {
    let mut steps = call.steps.iter();
    steps.rfind(|step| advice::phase(&step.name).is_none() && !step.name.starts_with("Describe"))
}

fn reported(event: &VolumeEvent) -> String {
    let VolumeEvent { reason, object, .. } = event;
    let message = one_line(&event.message);
    let message = message.trim_end_matches('.');
    let advice = or_empty(" ", advice::for_event(reason, message));
    format!("Kubernetes reports {reason} for {object}: {message}.{advice}")
}

fn failed(source: &str, call: &CallRecord) -> String {
    let code = call.code.as_deref().unwrap_or_default();
    let message = one_line(call.message.as_deref().unwrap_or("without a message"));
    let times = match call.first_started {
        Some(first) => format!(" {} times since {first:.0}", call.repeated + 1),
        None => String::new(),
    };
    let advice = or_empty("; ", missing_advice(&message));
    let method = &call.method;
    format!("{method} on {source} failed{times} with {code}: {message}{advice}")
}

/// The advice for a failure whose message has none, or was cut off before it.
fn missing_advice(message: &str) -> Option<&'static str> {
    let (name, _) = message.split_once(':')?;
    let mut failures = Failure::ALL.iter();
    let advice = failures.find(|failure| failure.name() == name)?.advice();
    (!message.contains(advice)).then_some(advice)
}
