//! The node against a model. A binary of its own: no process of another test may hold its devices.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each test binary uses its own part of the harness")]
mod common;

#[path = "../node/disk.rs"]
#[expect(dead_code, reason = "the model attaches its devices itself")]
mod disk;
mod model;
#[path = "../node/mounts.rs"]
#[expect(dead_code, reason = "only tests/node uses all of it")]
mod mounts;
