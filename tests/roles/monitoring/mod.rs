//! Alerts, dashboards and runbooks: they use metrics that exist, every alert fires in a unit test of `promtool`, and
//! `prometheus` gets data for every panel from a driver that it scrapes.

mod dashboards;
mod driver;
pub(crate) mod files;
mod names;
mod prometheus;
mod promql;
mod promtool;
mod runbooks;
mod scrape;

/// Fails with one line per problem.
fn report(problems: impl IntoIterator<Item = String>) {
    let problems: Vec<String> = problems.into_iter().collect();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}
