//! What the page shows.

use std::time::Duration;

use ecs::api_health::Report;
use ecs::rate_limit::LimitReport;
use jiff::Timestamp;

use crate::disk::QueueReport;
use crate::http::health::Readiness;
use crate::http::metrics::UnhealthyDisks;
use crate::model::{Category, ZoneId};
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
    /// From the calls that were made anyway.
    pub(super) cloud: Report,
    /// No zone is the whole region, no category is every category.
    pub(super) stockouts: Vec<(Option<ZoneId>, Option<Category>)>,
    /// None before the first listing, or without one.
    pub(super) unhealthy: Option<UnhealthyDisks>,
    /// The last one first.
    pub(super) failed: Vec<Summary>,
}
