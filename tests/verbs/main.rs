//! Tests of the disk services against the in-memory fake cloud, in virtual time.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "a failed helper fails its test")]

#[path = "../common/memory_cloud.rs"]
mod memory_cloud;

mod adverse;
mod attach;
mod attach_queue;
mod attach_reads;
mod attach_wait;
mod clone;
mod clone_snapshot;
mod crash;
mod create;
mod create_again;
mod create_ambiguous;
mod create_calls;
mod create_restart;
mod create_restore;
mod delete;
mod delete_with_instance;
mod detach;
mod detach_reads;
mod ephemeral;
mod evidence;
mod group;
mod group_absence;
mod group_delete;
mod group_failures;
mod health;
mod kit;
mod list;
mod load;
mod modify;
mod modify_concurrent;
mod modify_failures;
mod overdue;
mod overdue_workers;
mod permissions;
mod publish;
mod publish_read_only;
mod publish_rejections;
mod random;
mod random_clone;
mod random_create;
mod random_group;
mod random_snapshot;
mod refused;
mod rejected_attach;
mod released_node;
mod resize;
mod rng;
mod snapshot;
mod snapshot_absence;
mod snapshot_ambiguity;
mod snapshot_delete;
mod snapshot_reads;
mod stock;
mod throttle;
mod token_expiry;
mod unreachable;
