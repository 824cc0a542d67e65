//! The node on real block devices: loop devices represent attached disks. Tests that need root, loop devices or a tool
//! say so and are skipped where it is missing.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each test binary uses its own part of the harness")]
mod common;

mod hung;
mod service;
mod stage;
