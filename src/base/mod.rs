//! General utilities that do not depend on storage.

mod join;
mod keyed_locks;
mod log_once;
pub mod phase;

pub use join::join_all;
pub use keyed_locks::{KeyedLocks, LockGuard, LockMode};
pub use log_once::LogOnce;
pub use phase::{InPhase, Phase};
// The client counts the same time and finishes its work in the same tasks.
pub use ecs::base::{
    Clock, Deadline, Elapsed, SystemClock, Tasks, clock, deadline, error_chain, lock, task, without_user_info,
};

#[cfg(test)]
#[path = "../../crates/ecs/src/base/log_capture.rs"]
pub(crate) mod log_capture;
