//! Summaries of the calls of all volumes.

use std::time::Duration;

use jiff::Timestamp;

/// A call without its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The disk ID, or the name of a volume without a disk.
    pub(crate) volume: String,
    pub(crate) method: String,
    pub(crate) node: Option<String>,
    pub(crate) started: Timestamp,
    /// Until now, if it is running.
    pub(crate) elapsed: Duration,
    /// The gRPC code; none while the call is running.
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
    /// Number of earlier calls with the same failure.
    pub(crate) repeated: u32,
    /// The phase or action that is running.
    pub(crate) step: Option<String>,
}

impl Summary {
    pub(crate) fn is_running(&self) -> bool {
        self.code.is_none()
    }

    pub(crate) fn has_failed(&self) -> bool {
        let code = self.code.as_deref();
        code.is_some_and(|code| code != crate::csi::layer::OK)
    }

    /// When it ended; while it is running, now.
    pub(crate) fn ended(&self) -> Timestamp {
        let ended = self.started.checked_add(self.elapsed);
        ended.unwrap_or(self.started)
    }
}
