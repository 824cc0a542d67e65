//! The controller beside a small API server of Kubernetes: what it writes there, and how it does without.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../common/mod.rs"]
#[expect(
    dead_code,
    reason = "each file of tests uses its own part of the harness"
)]
mod common;

mod api;
mod events;
mod facts;
mod kit;
mod store;
mod taint;
