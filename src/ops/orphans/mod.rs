//! Disks and snapshots of this cluster that Kubernetes does not use, and volumes without a disk of this cluster.

mod classify;
mod delete;
mod finding;
mod flags;
mod observe;
mod render;
mod run;
#[cfg(test)]
mod tests;

pub use classify::{Rules, classify};
pub use finding::{Class, Kind, Report};
pub use flags::Flags;
pub use observe::Observer;
pub use run::run;
