//! Kubernetes: the objects that the controller and the operators' commands read and write. The node plugin does not
//! call the API server, except in its preStop hook ([`node_drain`]); it reads its attach limits from a mounted file
//! ([`instance_types`]).
//!
//! No volume operation depends on the API server. While it is unavailable, the last known state is used, and failed
//! writes are retried.

mod access;
pub mod driver_pods;
mod error;
pub mod events;
mod follow;
pub mod instance_types;
pub mod lease;
mod list;
pub mod node_drain;
pub mod node_status;
pub mod nodes;
mod objects;
pub mod out_of_service;
pub mod review;
pub mod static_volume;
pub mod taint;
pub mod volume_history;
pub mod volume_zones;
pub mod volumes;
pub mod workload;

pub use access::{Cluster, ConnectError};
pub use error::Error;
pub(crate) use objects::segment;

/// The result of a call to the API server, which may not respond, or forbid it.
pub type Result<T> = std::result::Result<T, Error>;
