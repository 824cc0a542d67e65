//! Tests of the disk services against the in-memory fake cloud, in virtual time.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "a failed helper fails its test")]

#[path = "../common/retrying_cloud.rs"]
mod retrying_cloud;

mod adverse;
mod attach;
mod attach_wait;
mod clone;
mod create;
mod create_again;
mod create_ambiguous;
mod create_restore;
mod delete;
mod detach;
mod ephemeral;
mod forgotten;
mod group;
mod group_absence;
mod group_delete;
mod health;
mod kit;
mod list;
mod modify;
mod mortal;
mod publish;
mod random;
mod random_clone;
mod random_create;
mod random_group;
mod random_snapshot;
mod refused;
mod resize;
mod rights;
mod rng;
mod snapshot;
mod snapshot_absence;
mod snapshot_ambiguity;
mod snapshot_delete;
mod stock;
mod storm;
mod throttle;
mod turn;
mod unreachable;
