//! Holds the pages to the code: what they name exists, what they list is complete, and what they
//! tell the reader to type is typed here and shows what they say.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod complete;
mod errors;
mod examples;
#[path = "../common/failure_table.rs"]
#[expect(dead_code, reason = "this suite only needs the names of the failures")]
mod failure_table;
mod failures;
mod flags;
mod guides;
mod lanes;
mod metrics;
mod named;
mod page;
mod play;
mod policies;
mod script;
mod upstream;
mod use_cases;

/// Fails with one line for each complaint.
fn report(complaints: impl IntoIterator<Item = String>) {
    let complaints: Vec<String> = complaints.into_iter().collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
