//! Access keys, secrets, tokens, signatures and `secrets` of CSI calls never appear in output or responses of the
//! program.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each file of tests uses its own part of the harness")]
mod common;

mod calls;
mod debug;
mod hidden;
mod hostile;
mod roles;
mod script;
