//! The node's process, killed again and again. A binary of its own: its processes have mount namespaces, which hold the
//! devices of all tests that run beside them.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each test binary uses its own part of the harness")]
mod common;

mod kill;
