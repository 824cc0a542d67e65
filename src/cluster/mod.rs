//! Kubernetes: what the controller reads of the cluster and writes to it. Nodes have no part in it: what they must know
//! reaches them as a file (`node.instanceTypes` and [`facts`]).
//!
//! Nothing here is needed for a volume. While the API server is away, what is known goes on being used, and what could
//! not be written is written later.

mod access;
mod error;
pub mod events;
mod follow;
pub mod instance_types;
pub mod nodes;
pub mod taint;

pub use access::{Cluster, ConnectError};
pub use error::Error;

/// What the API server did.
pub type Result<T> = std::result::Result<T, Error>;
