//! Small mechanisms that know nothing of disks.

pub mod chain;
pub mod clock;
pub mod deadline;
#[cfg(test)]
pub(crate) mod heard;
pub mod join;
pub mod lock;
pub mod news;
pub mod task;

pub use clock::{Clock, SystemClock, TokioClock};
pub use deadline::{Deadline, Elapsed};
pub use lock::{Guard, KeyedLocks, Mode as LockMode};
pub use news::News;
pub use task::Tasks;
