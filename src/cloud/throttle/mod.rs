//! Keeping within what the cloud lets through.
//!
//! The cloud counts the calls of each API (and of the whole account) by the minute of the clock; who
//! is refused in a minute is refused until the next. So a refusal shuts the API until its window is
//! over, and what was let through until then is its budget, to which later windows are paced. All
//! attempts of a process go through one [`Gate`], below the loop that repeats them.

mod fate;
mod gate;
mod lane;

pub use gate::{Gate, Pass};

/// Whose turn it is first where calls compete, the most urgent first. Within a class the first to
/// come is the first to go. The less urgent half is never shut out: it has a share of each API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Taking a disk off a node: another node waits for it.
    Detach,
    /// Bringing a disk to a node: a pod waits for it.
    Attach,
    /// Looking at named resources, which calls under way wait for.
    Wait,
    /// Making, growing and deleting.
    Change,
    /// Lists, searches and whatever runs in the background.
    List,
}

impl Class {
    /// The class of an action whose request does not tell more.
    #[must_use]
    pub fn of(action: &str) -> Self {
        match action {
            "DetachDisk" => Self::Detach,
            "AttachDisk" => Self::Attach,
            _ if action.starts_with("Describe") || action.starts_with("List") => Self::List,
            _ => Self::Change,
        }
    }

    /// The class of a description: of ids it is waited for, of a filter it is a list.
    #[must_use]
    pub fn of_ids<T>(ids: Option<&T>) -> Self {
        if ids.is_some() {
            Self::Wait
        } else {
            Self::List
        }
    }

    fn is_urgent(self) -> bool {
        match self {
            Self::Detach | Self::Attach | Self::Wait => true,
            Self::Change | Self::List => false,
        }
    }
}
