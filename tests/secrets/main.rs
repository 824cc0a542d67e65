//! Neither access key, secret, token, nor signature, nor what a CSI call carries in `secrets`, gets
//! into anything that the program prints or answers.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../common/mod.rs"]
#[expect(
    dead_code,
    reason = "each file of tests uses its own part of the harness"
)]
mod common;

mod debug;
mod hidden;
mod hostile;
mod roles;
mod script;
mod talk;
