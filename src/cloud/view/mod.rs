//! Observing the state of cloud resources. Any number of waiters share the describe calls of one poller, up to 100 ids
//! a call, and a poller without waiters makes none. A waiter for an operation is polled shortly after the moments at
//! which such operations have ended before ([`Poller::until_done`]).

mod absence;
mod durations;
mod evidence;
mod observation;
mod operation;
mod poller;
mod polling;
mod schedule;
mod source;
mod sources;
#[cfg(test)]
mod tests;
mod waiter;

pub use absence::Presence;
pub use evidence::{ConfirmedAbsent, LAG};
pub use observation::{Observation, WaitError};
pub use operation::{Operation, OperationKind};
pub use poller::Poller;

/// Ids that one describe call takes (ECS API, `DiskIds` and `SnapshotIds`).
pub const IDS_A_CALL: usize = 100;
