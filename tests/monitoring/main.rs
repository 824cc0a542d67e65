//! Alerts, dashboards and runbooks: they use metrics that exist, every alert fires in a unit test of `promtool`, and
//! `prometheus` gets data for every panel from a driver that it scrapes.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each file of tests uses its own part of the harness")]
mod common;
mod dashboards;
mod driver;
mod files;
mod names;
mod prometheus;
mod promql;
mod promtool;
mod runbooks;
mod scrape;
#[path = "../common/shell.rs"]
#[expect(dead_code, reason = "other tests use the other functions")]
mod shell;

/// Fails with one line per problem.
fn report(problems: impl IntoIterator<Item = String>) {
    let problems: Vec<String> = problems.into_iter().collect();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}
