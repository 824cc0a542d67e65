//! Time, tasks and texts: small mechanisms without knowledge of the API.

pub mod clock;
pub mod deadline;
mod error_chain;
#[cfg(test)]
pub(crate) mod log_capture;
mod mutex;
pub mod span;
pub mod task;
mod user_info;

pub use clock::{Clock, SystemClock};
pub use deadline::{Deadline, Elapsed};
pub use error_chain::error_chain;
pub use mutex::lock;
pub use task::Tasks;
pub use user_info::without_user_info;
