//! From what is seen to what is done: pure functions, so that every promise about data is one line
//! of a table of tests.

use super::observe::PathState;
use super::request::Access;

mod common;
mod expand;
mod leave;
mod option;
mod publish;
mod refusal;
mod stage;
mod step;

#[cfg(test)]
mod tests;

pub(super) use expand::expand;
pub(super) use leave::{LeaveSeen, behind, is_of, unpublish, unstage};
pub(super) use publish::{PublishSeen, publish};
pub use refusal::Refusal;
pub(super) use stage::{StageSeen, stage};
pub use step::Step;

/// Steps, or why there are none.
type Plan = Result<Vec<Step>, Refusal>;

/// How a volume is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) access: &'a Access,
    pub(super) read_only: bool,
    /// Whether the kernel itself must not write to the device.
    pub(super) locked: bool,
}
