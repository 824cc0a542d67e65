//! `/status`: the state of the controller as a page for browsers, rendered without scripts.

use async_trait::async_trait;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

use self::html::{PAUSED, Status, headers, html};
use super::Page;
use super::health::Health;
use super::metrics::ControllerGauges;
use crate::telemetry::{Summary, Timelines};

mod escape;
mod html;
mod style;
mod table;

/// Rows of the running and of the failed calls.
const MAX_RUNNING: usize = 100;
const MAX_FAILED: usize = 20;

/// The sources of the page.
#[derive(Debug)]
pub(crate) struct StatusPage {
    role: &'static str,
    started: Instant,
    sources: ControllerGauges,
}

impl StatusPage {
    /// The page of a role that starts now.
    pub(crate) fn new(role: &'static str, sources: ControllerGauges) -> Self {
        let started = Instant::now();
        Self { role, started, sources }
    }

    /// The current state. It makes no cloud calls.
    async fn read(&self, health: &Health, timelines: &Timelines) -> Status {
        let readiness = health.ready().await;
        let (running, failed) = calls(timelines.summaries());
        let ControllerGauges {
            disks,
            cloud,
            inventory,
        } = &self.sources;
        Status {
            role: self.role,
            version: env!("CARGO_PKG_VERSION"),
            now: cloud.clock.now(),
            uptime: self.started.elapsed(),
            readiness,
            queues: disks.attacher.queues(),
            omitted: running.len().saturating_sub(MAX_RUNNING),
            running: running.into_iter().take(MAX_RUNNING).collect(),
            limits: cloud.rate_limiter.report(),
            cloud: cloud.api_health.report(),
            stockouts: disks.provisioner.stockouts(),
            unhealthy: inventory.unhealthy(),
            failed,
        }
    }
}

#[async_trait]
impl Page for StatusPage {
    async fn response(&self, health: &Health, timelines: &Timelines, query: Option<&str>) -> Response {
        let html = html(&self.read(health, timelines).await, query == Some(PAUSED));
        (headers(), html).into_response()
    }
}

/// The running calls, the oldest first, and the failed ones that ended last, the last one first.
fn calls(all: Vec<Summary>) -> (Vec<Summary>, Vec<Summary>) {
    let (mut running, ended): (Vec<_>, Vec<_>) = all.into_iter().partition(|call| call.state.code.is_none());
    running.sort_by_key(|call| std::cmp::Reverse(call.elapsed));
    let mut failed: Vec<_> = ended.into_iter().filter(|call| call.state.has_failed()).collect();
    failed.sort_by_key(|call| std::cmp::Reverse(call.ended()));
    failed.truncate(MAX_FAILED);
    (running, failed)
}

#[cfg(test)]
mod tests;
