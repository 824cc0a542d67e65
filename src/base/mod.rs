//! General utilities that do not depend on storage.

pub mod clock;
pub mod deadline;
mod error_chain;
mod join;
pub mod lock;
#[cfg(test)]
pub(crate) mod log_capture;
mod log_once;
pub mod phase;
pub mod task;
mod user_info;

pub use clock::{Clock, SystemClock, TokioClock};
pub use deadline::{Deadline, Elapsed};
pub use error_chain::error_chain;
pub use join::join_all;
pub use lock::{KeyedLocks, LockGuard, LockMode};
pub use log_once::LogOnce;
pub use phase::{InPhase, Phase};
pub use task::Tasks;
pub use user_info::without_user_info;
