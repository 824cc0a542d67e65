//! The chart, as Helm renders it for each variant (`tests/helm/golden`, kept by `tests/helm/run`), is what
//! driver and cluster need and no more. These tests read files only; Helm is not needed.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod beside;
mod classes;
mod names;
mod page;
mod pods;
mod render;
mod rights;
mod values;

/// Fails with one line for each complaint.
fn report(complaints: impl IntoIterator<Item = String>) {
    let complaints: Vec<String> = complaints.into_iter().collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
