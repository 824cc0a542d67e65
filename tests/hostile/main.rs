//! Every field of every controller request, spoilt in every way: refused with the right code and by
//! name, before any cloud call. The fields are read from the proto: one without a rule here fails.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "in a helper as in a test, a failure fails the test")]

mod base;
mod every;
mod field;
#[path = "../common/memory_cloud.rs"]
mod memory_cloud;
mod random;
mod rpc;
mod rule;
mod spoil;
