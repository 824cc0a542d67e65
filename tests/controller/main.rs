//! The CSI Controller service, called in-process over the fake cloud: in memory, in virtual time, and over HTTP on a
//! `wiremock::MockServer`.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "in a helper as in a test, a failure fails the test")]

#[path = "../common/memory_cloud.rs"]
mod memory_cloud;
#[expect(dead_code, reason = "another file of tests calls over a socket")]
#[path = "../common/sidecar.rs"]
mod sidecar;

mod attachment;
mod cancel;
mod capability;
mod class;
mod code;
mod concurrency;
mod expand;
mod field;
mod group;
mod kit;
mod listing;
mod modify;
mod over_http;
mod placement;
mod published;
mod retry;
mod shared_polls;
mod size;
mod stockout;
