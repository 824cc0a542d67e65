use std::time::Duration;

use ecs::Condition;
use ecs::api_health::{Outage, Rejection, Report};
use ecs::rate_limit::LimitReport;
use jiff::Timestamp;

use super::html::duration;
use super::table::SHOWN;
use super::*;
use crate::disk::QueueReport;
use crate::http::health::{Check, Readiness};
use crate::http::metrics::UnhealthyDisks;
use crate::model::health::{HealthIssue, Severity};
use crate::model::{Category, DiskId, ZoneId};

const HOSTILE: &str = "<script>alert('x')</script>\" onmouseover=\"x";

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn ago(count: u64) -> Instant {
    Instant::now() - seconds(count)
}

fn empty() -> Status {
    Status {
        role: "controller",
        version: "1.2.3",
        now: Timestamp::UNIX_EPOCH,
        uptime: seconds(90_000),
        readiness: Readiness {
            ready: true,
            checks: vec![Check::new("socket", Ok("it responds".to_owned()))],
        },
        queues: Vec::new(),
        running: Vec::new(),
        omitted: 0,
        limits: Vec::new(),
        cloud: Report::default(),
        stockouts: Vec::new(),
        unhealthy: None,
        failed: Vec::new(),
    }
}

fn call(volume: &str, started: i64, elapsed: u64, code: Option<&str>) -> Summary {
    let mut call = Summary {
        volume: volume.to_owned(),
        elapsed: seconds(elapsed),
        step: Some("attach_queue".to_owned()),
        ..Summary::default()
    };
    call.state.method = "ControllerPublishVolume".to_owned();
    call.state.node = Some("i-1".to_owned());
    call.state.started = Timestamp::from_second(started).unwrap();
    call.state.code = code.map(str::to_owned);
    call.state.message = code.map(|code| format!("it failed with {code}"));
    call.state.repeated = 2;
    call
}

fn page(status: &Status) -> String {
    html(status, false)
}

#[track_caller]
fn contains(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "no {part:?}\n{page}");
    }
}

#[test]
fn an_idle_controller_has_all_sections_with_a_text_each() {
    let page = page(&empty());
    contains(
        &page,
        &[
            "<!DOCTYPE html>",
            "<html lang=\"en\">",
            "<meta http-equiv=\"refresh\" content=\"5\">",
            "Version 1.2.3, ready, running for 1 d 1 h",
            "1970-01-01T00:00:00Z",
            "<h2>Running calls</h2>\n<p class=\"empty\">No call is running.</p>",
            "No call has failed.",
            "none yet",
            "it responds",
        ],
    );
    assert!(!page.contains("Unhealthy"), "{page}");
    assert_eq!(page.matches("<h2>").count(), 7);
    // Readiness and the cloud always have rows.
    assert_eq!(page.matches("<table>").count(), 2);
}

#[test]
fn a_busy_controller_shows_waits_limits_stock_and_failures() {
    let page = page(&Status {
        readiness: Readiness {
            ready: false,
            checks: vec![Check::new("cloud", Err("no response for 75 s".to_owned()))],
        },
        queues: vec![QueueReport {
            operation: "attach",
            running: 1,
            waiting: 17,
            longest: 9,
        }],
        running: vec![call("d-1", 0, 75, None)],
        omitted: 3,
        limits: vec![LimitReport {
            configured: Some(5.0),
            action: "AttachDisk",
            waiting: 4,
            in_flight: 2,
            learned: Some(2.0),
            closed_for: Some(seconds(61)),
        }],
        cloud: Report {
            last_response: Some(ago(80)),
            outage: Some(Outage {
                since: ago(75),
                last_failure: ago(2),
                error: "no response from h".to_owned(),
                is_logged: true,
            }),
            rejected: Some((
                ago(4),
                Rejection {
                    condition: Condition::AccessKeyNotFound,
                    error: "InvalidAccessKeyId".to_owned(),
                },
            )),
        },
        stockouts: vec![
            (
                Some("cn-beijing-c".parse::<ZoneId>().unwrap()),
                Some(Category::CloudEssd),
            ),
            (None, None),
        ],
        unhealthy: Some(UnhealthyDisks {
            listed: ago(200),
            disks: vec![(
                "d-2".parse::<DiskId>().unwrap(),
                HealthIssue {
                    severity: Severity::Inaccessible,
                    reason: "LockedFinancial".to_owned(),
                    message: "locked".to_owned(),
                },
            )],
            omitted: 1,
        }),
        failed: vec![call("d-3", 60, 10, Some("NotFound"))],
        ..empty()
    });
    contains(
        &page,
        &[
            "<strong>not ready</strong>",
            "<strong>fails</strong></td><td class=\"prose\">no response for 75 s",
            "<td>attach</td><td class=\"number\">1</td><td class=\"number\">17</td><td class=\"number\">9</td>",
            "<td class=\"number\">75.0</td><td>attach_queue</td><td class=\"prose\">waiting until the instance",
            "3 more calls are running",
            "<td>AttachDisk</td><td class=\"number\">4</td><td class=\"number\">2</td><td>2.0 per second</td><td>5 per second</td>\
             <td>1 min 1 s</td>",
            "for 1 min 15 s, last failure 2 s ago: no response from h",
            "4 s ago: InvalidAccessKeyId; check the access key",
            "<td>cn-beijing-c</td><td>cloud_essd</td>",
            "<td>the whole region</td><td>every category</td>",
            "as of the listing 3 min 20 s ago",
            "<td>inaccessible</td><td>LockedFinancial</td>",
            "1 more problems are known",
            ">1970-01-01T00:01:10Z</time></td><td>ControllerPublishVolume</td>\
             <td><a href=\"debug/volumes/d%2D3\">d-3</a></td><td>NotFound</td><td class=\"prose\">it failed with NotFound</td>\
             <td class=\"number\">2</td>",
        ],
    );
}

/// A controller in which everything is long.
fn crowded() -> Status {
    let volume = |number: u32| format!("d-2zeg6qo6xx0{number:03}a1b2c3d");
    let message = "rpc error: UNAVAILABLE: AttachDisk of d-2zeg6qo6xx0001a1b2c3d on i-2ze0dw1m5yd9c1k6yqz4 failed: \
                   OperationDenied.InstanceBusy (RequestId 473469C7-AA6F-4DC5-B3DB-A3DC0DE3C83E): the instance has \
                   another operation; https://next.api.example/troubleshoot?q=OperationDenied.InstanceBusy&product=Ecs";
    let calls = |code: Option<&str>| -> Vec<Summary> {
        let call = |number: u32| {
            let mut call = call(&volume(number), 0, 4_000 - u64::from(number), code);
            call.state.method = "ControllerGetVolumeHealth".to_owned();
            call.state.node = Some("i-2ze0dw1m5yd9c1k6yqz4".to_owned());
            call.state.message = code.map(|_| message.to_owned());
            call
        };
        (0..60).map(call).collect()
    };
    let unhealthy = |number: u32| {
        let issue = HealthIssue {
            severity: Severity::Degraded,
            reason: "AttachedWithoutReservation".to_owned(),
            message: message.to_owned(),
        };
        (volume(number).parse::<DiskId>().unwrap(), issue)
    };
    let (running, mut failed) = (calls(None), calls(Some("FailedPrecondition")));
    failed.truncate(MAX_FAILED);
    Status {
        readiness: Readiness {
            ready: false,
            checks: vec![
                Check::new("socket", Ok("it responds".to_owned())),
                Check::new("credentials", Err(message.to_owned())),
            ],
        },
        queues: ["attach", "detach"]
            .map(|operation| QueueReport {
                operation,
                running: 12,
                waiting: 1_700,
                longest: 16,
            })
            .into(),
        running,
        omitted: 3,
        limits: ["AttachDisk", "DescribeInstanceTypes", "ModifyDiskSpec"]
            .map(|action| LimitReport {
                configured: Some(5.0),
                action,
                waiting: 1_234,
                in_flight: 2,
                learned: Some(2.0),
                closed_for: Some(seconds(61)),
            })
            .into(),
        cloud: Report {
            last_response: Some(ago(80)),
            outage: Some(Outage {
                since: ago(75),
                last_failure: ago(2),
                error: message.to_owned(),
                is_logged: true,
            }),
            rejected: None,
        },
        stockouts: vec![(
            Some("cn-wulanchabu-c".parse::<ZoneId>().unwrap()),
            Some(Category::CloudEssd),
        )],
        unhealthy: Some(UnhealthyDisks {
            listed: ago(200),
            disks: (0..60).map(unhealthy).collect(),
            omitted: 1,
        }),
        failed,
        ..empty()
    }
}

#[test]
fn tables_with_more_than_20_rows_are_collapsed() {
    let page = page(&crowded());
    // Running calls and unhealthy volumes; not the 20 failures.
    assert_eq!(
        page.matches("<details><summary>All 60 rows</summary></details>")
            .count(),
        2
    );
    let first_hidden = format!("tr:nth-child(n + {})", SHOWN + 1);
    contains(
        &page,
        &[&format!(
            "details:not([open]) + .box {first_hidden} {{ display: none; }}"
        )],
    );
    assert_eq!(page.matches("</details>\n<div class=\"box\"").count(), 2);
}

#[test]
fn the_page_reloads_unless_it_is_paused() {
    let reloading = html(&empty(), false);
    contains(
        &reloading,
        &["http-equiv=\"refresh\"", "<a href=\"status?paused\">pause</a>"],
    );
    let paused = html(&empty(), true);
    assert!(!paused.contains("http-equiv"), "{paused}");
    contains(&paused, &["<a href=\"status\">Reload</a>"]);
}

/// Writes the page to a file, to open it in a browser: `STATUS_PAGE=FILE cargo test --lib crowded_page`.
#[test]
fn the_crowded_page_has_no_table_outside_of_a_box() {
    let page = page(&crowded());
    if let Some(file) = std::env::var_os("STATUS_PAGE") {
        std::fs::write(file, &page).unwrap();
    }
    assert_eq!(page.matches("<table>").count(), 8);
    assert_eq!(page.matches("tabindex=\"0\">\n<table>").count(), 8);
    contains(&page, &[".box { overflow-x: auto; }", "name=\"viewport\""]);
}

#[test]
fn hostile_texts_are_only_text() {
    let mut hostile = call(HOSTILE, 0, 1, Some(HOSTILE));
    hostile.state.message = Some(HOSTILE.repeat(1000));
    hostile.state.method = HOSTILE.to_owned();
    let mut running = call(HOSTILE, 0, 1, None);
    running.state.node = Some(HOSTILE.to_owned());
    running.step = Some(HOSTILE.to_owned());
    let page = page(&Status {
        readiness: Readiness {
            ready: false,
            checks: vec![Check::new("cloud", Err(HOSTILE.to_owned()))],
        },
        cloud: Report {
            outage: Some(Outage {
                since: ago(1),
                last_failure: ago(1),
                error: HOSTILE.to_owned(),
                is_logged: true,
            }),
            rejected: Some((
                ago(1),
                Rejection {
                    condition: Condition::AccessKeyNotFound,
                    error: HOSTILE.to_owned(),
                },
            )),
            ..Report::default()
        },
        running: vec![running],
        failed: vec![hostile],
        ..empty()
    });
    assert!(!page.contains("<script"), "{page}");
    // The quote would end an attribute.
    assert!(!page.contains("\" onmouseover"), "{page}");
    let escaped = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot; onmouseover=&quot;x";
    assert!(page.matches(escaped).count() > 8, "{page}");
    contains(&page, &["href=\"debug/volumes/%3Cscript%3E", "…</td>"]);
    assert!(page.len() < 60_000, "{}", page.len());
}

#[test]
fn the_policy_permits_only_the_style_of_the_page() {
    let [(_, policy), ..] = headers();
    let policy = policy.to_str().unwrap();
    for part in ["default-src 'none'", "style-src 'sha256-", "base-uri 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let page = page(&empty());
    for part in ["<script", "style=\"", "src=", "<link"] {
        assert!(!page.contains(part), "{part}");
    }
}

#[test]
fn calls_are_split_and_sorted() {
    let (running, failed) = calls(vec![
        call("young", 90, 1, None),
        call("ended first", 0, 5, Some("Internal")),
        call("succeeded", 0, 5, Some("OK")),
        call("old", 0, 91, None),
        call("ended last", 1, 60, Some("Aborted")),
    ]);
    let names = |calls: &[Summary]| calls.iter().map(|c| c.volume.clone()).collect::<Vec<_>>();
    assert_eq!(names(&running), ["old", "young"]);
    assert_eq!(names(&failed), ["ended last", "ended first"]);
    let many = (0..50).map(|at| call("d-1", at, 1, Some("Internal")));
    let (_, failed) = calls(many.collect());
    assert_eq!(failed.len(), MAX_FAILED);
    assert_eq!(failed[0].state.started.as_second(), 49);
}

#[test]
fn durations_have_two_units() {
    for (count, text) in [
        (0, "0 s"),
        (59, "59 s"),
        (61, "1 min 1 s"),
        (3_700, "1 h 1 min"),
        (90_000, "1 d 1 h"),
    ] {
        assert_eq!(duration(seconds(count)), text);
    }
}
