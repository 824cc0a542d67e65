//! Checks the chart's values and renders: flags, permissions, security contexts, names, generated tables. The tests
//! read the files that `tests/helm/run` writes to `tests/helm/golden`; Helm renders the other variants.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod classes;
mod comparison;
mod formats;
mod images;
mod monitoring;
mod names;
mod node_pods;
mod optional;
mod page;
mod pods;
mod render;
mod rights;
mod settings;
mod upgrades;
mod values;

/// Fails with one line per problem.
fn report(problems: impl IntoIterator<Item = String>) {
    let problems: Vec<String> = problems.into_iter().collect();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}
