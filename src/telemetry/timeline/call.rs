//! A call in the history of a volume.

use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use tokio::time::Instant;

use crate::base::lock;
use crate::csi::layer::OK;

/// Steps of a call: the first ones, and then the last ones.
const MAX_STEPS: usize = 24;
const FIRST_STEPS: usize = 12;

/// Warnings of a call.
const MAX_NOTES: usize = 8;

/// Characters of a message.
const MAX_MESSAGE: usize = 1024;

/// Calls that only read, and that kubelet and sidecars repeat.
const ROUTINE: [&str; 6] = [
    "NodeGetVolumeStats",
    "NodeGetVolumeHealth",
    "ControllerGetVolume",
    "ControllerGetVolumeHealth",
    "ValidateVolumeCapabilities",
    "GetSnapshot",
];

/// Steps that took less are not worth reading, unless they failed or are cloud calls.
const NEGLIGIBLE: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct RecordedCall {
    pub(in crate::telemetry) began: Instant,
    pub(super) record: Mutex<Record>,
}

/// The state of a call, without its steps.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct CallState {
    pub(crate) method: String,
    pub(crate) started: Timestamp,
    /// Missing while the call is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<f64>,
    /// The gRPC code; missing while the call is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// Number of earlier calls with the same failure, and when the first of them started.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) repeated: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_started: Option<Timestamp>,
}

impl CallState {
    pub(crate) fn has_failed(&self) -> bool {
        self.code.as_deref().is_some_and(|code| code != OK)
    }
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Record {
    #[serde(flatten)]
    state: CallState,
    steps: Vec<RecordedStep>,
    #[serde(skip_serializing_if = "is_zero")]
    omitted_steps: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// The name under which the volume is requested.
    #[serde(skip)]
    pub(super) name: Option<String>,
    #[serde(skip)]
    next_step: usize,
}

/// A call in a list of the calls of all volumes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Summary {
    /// The disk ID, or the name of a volume without a disk.
    pub(crate) volume: String,
    pub(crate) state: CallState,
    /// Until now, if it is running.
    pub(crate) elapsed: Duration,
    /// The phase or action that is running.
    pub(crate) step: Option<String>,
}

impl Summary {
    /// When it ended; while it is running, now.
    pub(crate) fn ended(&self) -> Timestamp {
        let ended = self.state.started.checked_add(self.elapsed);
        ended.unwrap_or(self.state.started)
    }
}

/// A phase, or a cloud call.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RecordedStep {
    #[serde(skip)]
    index: usize,
    /// A phase such as `device_wait`, or an action of the cloud such as `AttachDisk`.
    name: String,
    /// Seconds after the start of the call.
    after: f64,
    /// Missing while the step is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    /// The error code of the cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Serialize for RecordedCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        lock(&self.record).serialize(serializer)
    }
}

impl RecordedCall {
    pub(super) fn new(method: &str, started: Timestamp) -> Self {
        let state = CallState {
            method: method.to_owned(),
            started,
            ..CallState::default()
        };
        Self {
            began: Instant::now(),
            record: Mutex::new(Record {
                state,
                ..Record::default()
            }),
        }
    }

    /// Whether it succeeded without a warning and belongs to the routine of kubelet and sidecars, which would displace
    /// other calls.
    pub(super) fn is_routine(&self) -> bool {
        let Record { state, notes, .. } = &*lock(&self.record);
        state.code.as_deref() == Some(OK) && notes.is_empty() && ROUTINE.contains(&state.method.as_str())
    }

    pub(in crate::telemetry) fn set_node(&self, node: &str) {
        lock(&self.record).state.node = Some(node.to_owned());
    }

    pub(super) fn end(&self, code: &str, message: Option<String>, elapsed: Duration) {
        let state = &mut lock(&self.record).state;
        state.seconds = Some(elapsed.as_secs_f64());
        state.code = Some(code.to_owned());
        state.message = message.map(|message| shorten(&message));
    }

    /// Whether this is the same call as an earlier one that failed, without a warning that is still of interest.
    pub(super) fn recovers(&self, before: &Self) -> bool {
        let state = &lock(&self.record).state;
        let Record {
            state: earlier, notes, ..
        } = &*lock(&before.record);
        earlier.has_failed() && notes.is_empty() && state.method == earlier.method && state.node == earlier.node
    }

    /// Counts an earlier call with the same failure, which it replaces.
    pub(super) fn repeats(&self, before: &Self) -> bool {
        let before = &lock(&before.record).state;
        let state = &mut lock(&self.record).state;
        let is_same = state.method == before.method
            && state.node == before.node
            && state.code == before.code
            && state.has_failed()
            && without_digits(state.message.as_deref()) == without_digits(before.message.as_deref());
        if is_same {
            state.repeated = before.repeated + 1;
            state.first_started = Some(before.first_started.unwrap_or(before.started));
        }
        is_same
    }

    /// Starts a step. Returns its number.
    pub(in crate::telemetry) fn start_step(&self, name: &str) -> Option<usize> {
        let mut record = lock(&self.record);
        if record.state.seconds.is_some() {
            return None;
        }
        let index = record.next_step;
        record.next_step += 1;
        if record.steps.len() >= MAX_STEPS {
            let oldest = record.steps[FIRST_STEPS..]
                .iter()
                .position(|step| step.seconds.is_some())?;
            record.steps.remove(FIRST_STEPS + oldest);
            record.omitted_steps += 1;
        }
        let after = self.began.elapsed().as_secs_f64();
        record.steps.push(RecordedStep {
            index,
            name: name.to_owned(),
            after,
            seconds: None,
            code: None,
            request_id: None,
        });
        Some(index)
    }

    /// `code` and `request_id` are those of the cloud.
    pub(in crate::telemetry) fn end_step(
        &self,
        index: usize,
        elapsed: Duration,
        code: Option<String>,
        request_id: Option<String>,
    ) {
        let mut record = lock(&self.record);
        let Some(at) = record.steps.iter().position(|step| step.index == index) else {
            return;
        };
        if code.is_none() && request_id.is_none() && elapsed < NEGLIGIBLE {
            record.steps.remove(at);
            return;
        }
        let step = &mut record.steps[at];
        step.seconds = Some(elapsed.as_secs_f64());
        (step.code, step.request_id) = (code, request_id);
    }

    pub(in crate::telemetry) fn note(&self, text: &str) {
        let mut record = lock(&self.record);
        if record.notes.len() < MAX_NOTES {
            record.notes.push(shorten(text));
        }
    }

    pub(super) fn summary(&self, volume: String) -> Summary {
        let record = lock(&self.record);
        let running = record.steps.iter().rfind(|step| step.seconds.is_none());
        let seconds = record.state.seconds;
        let elapsed = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Summary {
            volume,
            state: record.state.clone(),
            elapsed: elapsed.unwrap_or_else(|| self.began.elapsed()),
            step: running.map(|step| step.name.clone()),
        }
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The message without the numbers and RequestIds that differ between retries.
fn without_digits(message: Option<&str>) -> Option<String> {
    let is_kept = |c: &char| !c.is_ascii_digit() && !c.is_ascii_uppercase();
    message.map(|message| message.chars().filter(is_kept).collect())
}
