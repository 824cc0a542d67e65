//! Health of disks.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct InjectedHealth {
    /// `HealthStatus`, such as `Impaired`; unset is `Ok`.
    pub health: Option<String>,
    /// The active event, such as `Stalled`.
    pub event: Option<String>,
    /// The `LockReason` in `DescribeDisks`, such as `financial`.
    pub lock: Option<String>,
    /// `DescribeDisks` omits the status, which makes the row unreadable.
    pub unreadable: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct HealthRow {
    pub(crate) disk: String,
    pub(crate) instance: String,
    pub(crate) status: &'static str,
    pub(crate) health: String,
    pub(crate) event: Option<String>,
    pub(crate) event_id: String,
}
