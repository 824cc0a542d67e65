//! The node against a model. A binary of its own: no process of another test may hold its devices.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each test binary uses its own part of the harness")]
mod common;

mod model;
