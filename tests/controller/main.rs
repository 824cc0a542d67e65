//! The CSI Controller service, called in-process over the fake cloud in memory, in virtual time.
#![cfg(feature = "mock-cloud")]
#![expect(
    clippy::unwrap_used,
    reason = "in a helper as in a test, a failure fails the test"
)]

#[path = "../common/patient.rs"]
mod patient;

mod capability;
mod class;
mod code;
mod concurrency;
mod defects;
mod field;
mod group;
mod grow;
mod kit;
mod listing;
mod modify;
mod place;
mod together;
