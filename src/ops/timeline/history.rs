//! The history of a volume as `/debug/volumes/ID` serves it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct History {
    pub volume: String,
    pub names: Vec<String>,
    pub calls: Vec<Call>,
    /// The disk in the cloud, if the process calls it.
    #[serde(default)]
    pub disk: Option<DiskState>,
}

/// The state of the disk in the cloud when the page was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DiskState {
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
pub struct Call {
    pub method: String,
    pub started: Timestamp,
    /// `None` while the call is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(default)]
    pub repeated: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_started: Option<Timestamp>,
    #[serde(default)]
    pub steps: Vec<Step>,
    #[serde(default)]
    pub omitted_steps: u32,
    #[serde(default)]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub name: String,
    /// Seconds after the start of the call.
    pub after: f64,
    /// `None` while the step is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Call {
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.seconds.is_none()
    }

    #[must_use]
    pub fn failed(&self) -> bool {
        self.code.as_deref().is_some_and(|code| code != "OK")
    }

    /// The step that a running call waits for.
    #[must_use]
    pub fn current_step(&self) -> Option<&Step> {
        self.steps.iter().rfind(|step| step.seconds.is_none())
    }
}
