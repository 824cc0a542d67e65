//! The controller beside a small API server of Kubernetes: what it writes there, and how it does without.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each file of tests uses its own part of the harness")]
mod common;

mod api;
mod bundle;
mod doctor;
mod events;
mod facts;
mod http_access;
mod kit;
mod leader;
mod orphans;
mod pre_stop_hook;
mod store;
mod taint;
mod timeline;
