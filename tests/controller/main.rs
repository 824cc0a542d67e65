//! The controller against the fake cloud, from the client of the ECS API to the process.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each test binary uses its own part of the harness")]
mod common;

mod chaos;
mod contract;
mod credentials;
mod hostile;
mod kill;
mod rate_limit;
mod service;
mod verbs;
