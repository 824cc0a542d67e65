//! Everything goes wrong all the time: calls fail before or after they took effect, connections end,
//! reads are old. Two hundred volumes with snapshots must live as on a calm day.
//!
//! `CHAOS_SEED=7 cargo test --test chaos` runs with the seeds from 7 on.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "in a helper as in a test, a failure fails the test")]

#[path = "../common/expected.rs"]
mod expected;
#[path = "../common/findings.rs"]
mod findings;
#[path = "../common/lifecycle.rs"]
mod lifecycle;
#[path = "../common/memory_cloud.rs"]
mod memory_cloud;
#[path = "../common/plan.rs"]
mod plan;
#[expect(dead_code, reason = "another file of tests calls over a socket")]
#[path = "../common/sidecar.rs"]
mod sidecar;
#[path = "../common/state.rs"]
mod state;

mod lists;
mod memory;
mod planted;
mod run;
mod wire;
