//! Summaries of the calls of all volumes.

use std::time::Duration;

use jiff::Timestamp;

/// A call without its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::app) struct Summary {
    /// The disk ID, or the name of a volume without a disk.
    pub(in crate::app) volume: String,
    pub(in crate::app) method: String,
    pub(in crate::app) node: Option<String>,
    pub(in crate::app) started: Timestamp,
    /// Until now, if it is running.
    pub(in crate::app) elapsed: Duration,
    /// The gRPC code; none while the call is running.
    pub(in crate::app) code: Option<String>,
    pub(in crate::app) message: Option<String>,
    /// Number of earlier calls with the same failure.
    pub(in crate::app) repeated: u32,
    /// The phase or action that is running.
    pub(in crate::app) step: Option<String>,
}

impl Summary {
    pub(in crate::app) fn is_running(&self) -> bool {
        self.code.is_none()
    }

    pub(in crate::app) fn has_failed(&self) -> bool {
        let code = self.code.as_deref();
        code.is_some_and(|code| code != crate::csi::layer::OK)
    }

    /// When it ended; while it is running, now.
    pub(in crate::app) fn ended(&self) -> Timestamp {
        let ended = self.started.checked_add(self.elapsed);
        ended.unwrap_or(self.started)
    }
}
