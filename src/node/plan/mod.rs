//! Plans the steps of a node operation from the observed state of the host. All functions are pure.

use super::path::PathState;
use super::request::{Access, PublishRequest, StageRequest};

mod common;
mod error;
mod expand;
mod mount_owner;
mod partition;
mod publish;
mod stage;
mod step;

#[cfg(test)]
mod tests;

pub use error::PlanError;
pub(super) use expand::expand;
pub(super) use mount_owner::{Identity, MountOwner, device_name, mount_owner};
pub(super) use partition::{partition_grows, partition_has_room, single_partition};
pub(super) use publish::{PublishObservation, publish};
pub(super) use stage::{StageObservation, stage};
pub use step::Step;

/// The steps in order of execution. Empty if the host is already in the requested state.
type Plan = Result<Vec<Step>, PlanError>;
