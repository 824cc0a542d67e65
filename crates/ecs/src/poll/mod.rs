//! Polls the state of cloud resources. Any number of waiters share the describe calls of one poller, up to 100 ids
//! per call, and a poller without waiters makes none. Polls for an operation are sent shortly after the ages at which
//! such operations have ended before ([`Poller::wait_until_done`]).

mod canaries;
mod durations;
mod learned;
mod observation;
mod operation;
mod overdue;
mod poller;
mod polling;
mod schedule;
mod source;
mod sources;
#[cfg(test)]
mod tests;
mod waiter;

pub use observation::{MissingProof, Observation, WaitError};
pub use operation::{Operation, OperationKind};
pub use overdue::{OVERDUE, RunningOperations};
pub use poller::Poller;
pub use sources::MAX_IDS_PER_CALL;
pub use waiter::PollMode;
