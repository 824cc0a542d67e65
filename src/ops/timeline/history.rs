//! The history of a volume as `/debug/volumes/ID` serves it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct History {
    pub(super) volume: String,
    pub(super) calls: Vec<CallRecord>,
    /// The disk in the cloud, if the process calls it.
    pub(super) disk: Option<DiskState>,
}

/// The state of the disk in the cloud when the page was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum DiskState {
    Error {
        error: String,
    },
    #[serde(rename_all = "camelCase")]
    Known {
        status: String,
        category: String,
        size_gib: u64,
        zone: Option<String>,
        instances: Vec<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CallRecord {
    pub(super) method: String,
    pub(super) started: Timestamp,
    /// `None` while the call is running.
    pub(super) seconds: Option<f64>,
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
    pub(super) node: Option<String>,
    #[serde(default)]
    pub(super) repeated: u32,
    pub(super) first_started: Option<Timestamp>,
    #[serde(default)]
    pub(super) steps: Vec<StepRecord>,
    #[serde(default)]
    pub(super) omitted_steps: u32,
    #[serde(default)]
    pub(super) notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StepRecord {
    pub(super) name: String,
    /// Seconds after the start of the call.
    pub(super) after: f64,
    /// `None` while the step is running.
    pub(super) seconds: Option<f64>,
    pub(super) code: Option<String>,
    pub(super) request_id: Option<String>,
}

impl CallRecord {
    pub(super) fn is_running(&self) -> bool {
        self.seconds.is_none()
    }
    pub(super) fn failed(&self) -> bool {
        self.code.as_deref().is_some_and(|code| code != "OK")
    }

    /// The step that a running call waits for.
    pub(super) fn current_step(&self) -> Option<&StepRecord> {
        self.steps.iter().rfind(|step| step.seconds.is_none())
    }
}
