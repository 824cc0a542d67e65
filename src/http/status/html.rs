//! The page as HTML. Every text passes through [`Escaped`].

use std::fmt::Write;
use std::time::Duration;

use ecs::api_health::{Rejection, Report};
use ecs::rate_limit::LimitReport;
use http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::time::Instant;

use super::escape::Escaped;
use super::style::{STYLE, policy};
use super::table::{Cell, table};
use crate::disk::QueueReport;
use crate::http::health::Readiness;
use crate::http::metrics::UnhealthyDisks;
use crate::model::health::Severity;
use crate::model::{Category, Failure, ZoneId};
use crate::ops::timeline::describe;
use crate::telemetry::Summary;

/// The time between two loads of the page.
const REFRESH_SECONDS: u32 = 5;

/// The query of the page that does not reload itself.
pub(crate) const PAUSED: &str = "paused";

/// The content of the page.
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

/// The headers of the page in addition to those of every response.
pub(crate) fn headers() -> [(HeaderName, HeaderValue); 4] {
    let policy = HeaderValue::try_from(policy()).expect("the policy is ASCII");
    [
        (CONTENT_SECURITY_POLICY, policy),
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ]
}

/// The page. It reloads itself, which closes what was opened, unless it is paused.
pub(crate) fn html(status: &Status, paused: bool) -> String {
    let sections = [
        readiness(status),
        queues(status),
        waits(status),
        limits(status),
        cloud(&status.cloud),
        stockouts(status),
        unhealthy(status),
        failures(status),
    ];
    let mut page = String::new();
    let (role, version) = (Escaped(status.role), Escaped(status.version));
    let (now, uptime) = (status.now, duration(status.uptime));
    let state = match status.readiness.ready {
        true => "ready",
        false => "<strong>not ready</strong>",
    };
    let (refresh, reload) = match paused {
        true => (String::new(), "<a href=\"status\">Reload</a>".to_owned()),
        false => (
            format!("<meta http-equiv=\"refresh\" content=\"{REFRESH_SECONDS}\">\n"),
            format!("It reloads every {REFRESH_SECONDS} s: <a href=\"status?{PAUSED}\">pause</a>."),
        ),
    };
    write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         {refresh}\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>diskplugin {role}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n\
         <h1>diskplugin {role}</h1>\n\
         <p>Version {version}, {state}, running for {uptime}, as of <time datetime=\"{now:.0}\">{now:.0}</time>. \
         {reload}</p>\n</header>\n<main>\n"
    )
    .expect("writing into memory does not fail");
    for section in sections {
        page.push_str(&section);
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn readiness(status: &Status) -> String {
    let checks = &status.readiness.checks;
    let rows = checks.iter().map(|check| {
        let state = match check.ok {
            true => Cell::text("ok"),
            false => Cell::strong("fails"),
        };
        [Cell::text(check.name), state, Cell::prose(&check.message)]
    });
    table("Readiness", &["Check", "State", "Message"], rows, "No checks.")
}

fn queues(status: &Status) -> String {
    let rows = status.queues.iter().map(|queue| {
        [
            Cell::text(queue.operation),
            Cell::number(&queue.running),
            Cell::number(&queue.waiting),
            Cell::number(&queue.longest),
        ]
    });
    let columns = [
        "Operation",
        "#Running",
        "#Waiting for their instance",
        "#Longest queue of an instance",
    ];
    table("Attach and detach queues", &columns, rows, "No queues.")
}

fn waits(status: &Status) -> String {
    let rows = status.running.iter().map(|call| {
        let (step, meaning) = match &call.step {
            Some(step) => (step.as_str(), describe(step)),
            None => ("", String::new()),
        };
        [
            Cell::text(&call.state.method),
            Cell::link(&call.volume, &history(&call.volume)),
            Cell::text(call.state.node.as_deref().unwrap_or_default()),
            Cell::number(&format!("{:.1}", call.elapsed.as_secs_f64())),
            Cell::text(step),
            Cell::prose(meaning),
        ]
    });
    let columns = ["Method", "Volume", "Node", "#Seconds", "Phase", "Meaning"];
    let table = table("Running calls", &columns, rows, "No call is running.");
    table + &more(status.omitted, "calls are running")
}

fn limits(status: &Status) -> String {
    let rows = status.limits.iter().map(|limit| {
        let learned = match limit.learned {
            Some(rate) => format!("{rate:.1} per second"),
            None => "none learned".to_owned(),
        };
        let configured = limit.configured.map(|rate| format!("{rate} per second"));
        let closed = limit.closed_for.map(duration);
        [
            Cell::text(limit.action),
            Cell::number(&limit.waiting),
            Cell::number(&limit.in_flight),
            Cell::text(learned),
            Cell::text(configured.unwrap_or_default()),
            Cell::text(closed.unwrap_or_default()),
        ]
    });
    let columns = [
        "Action",
        "#Waiting",
        "#In flight",
        "Quota",
        "Configured limit",
        "Closed for",
    ];
    let empty = "No cloud call was made yet.";
    table("Rate limits of the cloud", &columns, rows, empty)
}

fn cloud(report: &Report) -> String {
    let last = report.last_response.map(|at| format!("{} ago", elapsed(at)));
    let mut rows = vec![[
        Cell::text("Last response"),
        Cell::prose(last.unwrap_or_else(|| "none yet".to_owned())),
    ]];
    if let Some(outage) = &report.outage {
        let (since, last, error) = (elapsed(outage.since), elapsed(outage.last_failure), &outage.error);
        rows.push([
            Cell::strong("Outage"),
            Cell::prose(format!("for {since}, last failure {last} ago: {error}")),
        ]);
    }
    if let Some((at, Rejection { condition, error })) = &report.rejected {
        let (ago, advice) = (elapsed(*at), Failure::from(*condition).advice());
        rows.push([
            Cell::strong("Rejected"),
            Cell::prose(format!("{ago} ago: {error}; {advice}")),
        ]);
    }
    table("Cloud API", &["Subject", "State"], rows, "")
}

fn stockouts(status: &Status) -> String {
    let rows = status.stockouts.iter().map(|(zone, category)| {
        let zone = zone.as_ref().map(ToString::to_string);
        let category = category.as_ref().map(ToString::to_string);
        [
            Cell::text(zone.unwrap_or_else(|| "the whole region".to_owned())),
            Cell::text(category.unwrap_or_else(|| "every category".to_owned())),
        ]
    });
    let empty = "The cloud has recently reported no lack of stock.";
    table("Out of stock", &["Zone", "Category"], rows, empty)
}

fn unhealthy(status: &Status) -> String {
    // The controller has not listed its disks, so nothing is known.
    let Some(unhealthy) = &status.unhealthy else {
        return String::new();
    };
    let rows = unhealthy.disks.iter().map(|(disk, issue)| {
        let severity = match issue.severity {
            Severity::Degraded => "degraded",
            Severity::Inaccessible => "inaccessible",
            Severity::DataLoss => "data loss",
        };
        [
            Cell::link(disk, &history(disk.as_str())),
            Cell::text(severity),
            Cell::text(&issue.reason),
            Cell::prose(&issue.message),
        ]
    });
    let caption = format!("Unhealthy volumes, as of the listing {} ago", elapsed(unhealthy.listed));
    let columns = ["Volume", "Severity", "Reason", "Message"];
    let empty = "The listing shows no unhealthy volume.";
    table(&caption, &columns, rows, empty) + &more(unhealthy.omitted, "problems are known")
}

fn failures(status: &Status) -> String {
    let rows = status.failed.iter().map(|call| {
        [
            Cell::time(call.ended()),
            Cell::text(&call.state.method),
            Cell::link(&call.volume, &history(&call.volume)),
            Cell::text(call.state.code.as_deref().unwrap_or_default()),
            Cell::prose(call.state.message.as_deref().unwrap_or_default()),
            Cell::number(&call.state.repeated),
        ]
    });
    let columns = ["Time", "Method", "Volume", "Code", "Message", "#Repetitions"];
    table("Recent failures", &columns, rows, "No call has failed.")
}

fn more(omitted: usize, what: &str) -> String {
    match omitted {
        0 => String::new(),
        omitted => format!("<p class=\"more\">{omitted} more {what}.</p>\n"),
    }
}

/// The history of a volume, relative to the page: a proxy may serve it below another path.
fn history(volume: &str) -> String {
    format!("debug/volumes/{}", utf8_percent_encode(volume, NON_ALPHANUMERIC))
}

fn elapsed(since: Instant) -> String {
    duration(since.elapsed())
}

/// Seconds below a minute, then two units.
pub(super) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min {} s", seconds % 60),
        3600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}
