//! What the page shows.

use std::time::Duration;

use ecs::rate_limit::LimitReport;
use jiff::Timestamp;

use crate::disk::{HealthIssue, QueueReport};
use crate::http::health::Readiness;
use crate::model::{Category, DiskId, ZoneId};
use crate::telemetry::Summary;

#[derive(Debug)]
pub(crate) struct Status {
    pub(super) role: &'static str,
    pub(super) version: &'static str,
    pub(super) now: Timestamp,
    pub(super) uptime: Duration,
    pub(super) readiness: Readiness,
    pub(super) queues: Vec<QueueReport>,
    /// The oldest first.
    pub(super) running: Vec<Summary>,
    /// Running calls that are not in `running`.
    pub(super) omitted: usize,
    pub(super) limits: Vec<LimitReport>,
    pub(super) cloud: CloudState,
    pub(super) stockouts: Vec<Stockout>,
    /// None before the first listing, or without one.
    pub(super) unhealthy: Option<Unhealthy>,
    /// The last one first.
    pub(super) failed: Vec<Summary>,
}

/// The cloud API as seen by the calls that were made anyway.
#[derive(Debug, Default)]
pub(super) struct CloudState {
    /// Time since then.
    pub(super) last_response: Option<Duration>,
    pub(super) outage: Option<Outage>,
    pub(super) rejection: Option<Rejection>,
}

/// No response since then.
#[derive(Debug)]
pub(super) struct Outage {
    pub(super) since: Duration,
    pub(super) last_failure: Duration,
    pub(super) error: String,
}

/// The credentials or the region were rejected.
#[derive(Debug)]
pub(super) struct Rejection {
    pub(super) ago: Duration,
    pub(super) error: String,
    pub(super) advice: &'static str,
}

#[derive(Debug)]
pub(super) struct Stockout {
    /// None is the whole region.
    pub(super) zone: Option<ZoneId>,
    /// None is every category.
    pub(super) category: Option<Category>,
}

/// The problems that the last listing of the disks showed.
#[derive(Debug)]
pub(super) struct Unhealthy {
    /// Time since then.
    pub(super) listed: Duration,
    pub(super) disks: Vec<(DiskId, HealthIssue)>,
    pub(super) omitted: usize,
}
