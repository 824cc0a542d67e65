//! Compares the pages with the code: the items that they name exist, references are complete, and commands print the
//! output in the pages.
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
mod metrics;
mod named;
mod page;
mod pictures;
mod play;
mod policies;
mod script;
mod upstream;
mod use_cases;

/// Fails with one line per problem.
fn report(problems: impl IntoIterator<Item = String>) {
    let problems: Vec<String> = problems.into_iter().collect();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}
