//! Kubernetes: what the controller reads of the cluster and writes to it. The node plugin does not call the API server:
//! what it must know reaches it as a file (`node.instanceTypes` and [`instance_types`]). Only its preStop hook does
//! ([`node_drain`]).
//!
//! Nothing here is needed for a volume. While the API server is away, what is known goes on being used, and what could
//! not be written is written later.

mod access;
pub mod driver_pods;
pub mod driver_status;
mod error;
pub mod events;
mod follow;
pub mod inspection;
pub mod instance_types;
pub mod lease;
mod list;
pub mod node_drain;
pub mod nodes;
mod objects;
pub mod pod_report;
pub mod taint;
pub mod token_review;
pub mod volume_history;
pub mod volume_zones;
pub mod volumes;
pub mod workload;

pub use access::{Cluster, ConnectError};
pub use error::Error;

/// What the API server did.
pub type Result<T> = std::result::Result<T, Error>;
