//! Disks and snapshots of this cluster that Kubernetes does not use, and volumes without a disk of this cluster.

mod classify;
mod delete;
mod finding;
#[cfg(test)]
mod fixtures;
mod observe;
mod render;

pub use classify::{Rules, UnrelatedCluster, classify};
pub use delete::{Current, Deletion, Outcome, Refusal, refusal};
pub use finding::{Class, Finding, InvalidResourceId, Kind, Report, ResourceId};
pub use observe::{ObserveError, Observed, Observer, Presence};
pub use render::{deletions_table, json, table};
