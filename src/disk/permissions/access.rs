//! Whether a response shows that an action is allowed.

use ecs::{Condition, Kind, Page};

use crate::base::error_chain;

const NO_ROWS: &str = "the list is empty: no such resource exists, or the action is denied";
const NO_SYSTEM_DISK: &str =
    "the list is empty, although each instance has a system disk; callers without permission get empty lists";
const NOT_DENIED: &str = "not denied; cannot be verified without side effects";

/// Whether an action is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    Allowed,
    Denied(String),
    /// It is probably denied, and why.
    ProbablyDenied(&'static str),
    /// It is not denied, but the response does not prove that it is allowed.
    Unknown(&'static str),
    /// The call failed for another reason.
    Failed(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionAccess {
    pub action: &'static str,
    pub access: Access,
}

pub(super) fn unknown(action: &'static str, why: &'static str) -> ActionAccess {
    ActionAccess {
        action,
        access: Access::Unknown(why),
    }
}

/// Whether a list has rows for a caller with permission.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expected {
    Always,
    /// The system disks of instances, which other implementations of the API may not list.
    SystemDisks,
    Perhaps,
}

/// A response with a list.
pub(super) trait Rows {
    fn any(&self) -> bool;
}

impl<T> Rows for Page<T> {
    fn any(&self) -> bool {
        !self.rows.is_empty()
    }
}

impl<T> Rows for Vec<T> {
    fn any(&self) -> bool {
        !self.is_empty()
    }
}

/// Judges a read. The cloud responds to callers without permission with no rows.
pub(super) fn read<T: Rows>(action: &'static str, outcome: &ecs::Result<T>, expected: Expected) -> ActionAccess {
    let access = match (outcome, expected) {
        (Err(error), _) => of_error(error),
        (Ok(rows), _) if rows.any() => Access::Allowed,
        (Ok(_), Expected::Always) => {
            Access::Denied("the list is empty, as the cloud responds to callers without permission".to_owned())
        }
        (Ok(_), Expected::SystemDisks) => Access::ProbablyDenied(NO_SYSTEM_DISK),
        (Ok(_), Expected::Perhaps) => Access::Unknown(NO_ROWS),
    };
    ActionAccess { action, access }
}

pub(super) fn write(action: &'static str, outcome: ecs::Result<()>) -> ActionAccess {
    let access = match outcome {
        Ok(()) => Access::Allowed,
        Err(error) if error.condition() == Condition::DryRunAccepted => Access::Allowed,
        Err(error) => of_error(&error),
    };
    ActionAccess { action, access }
}

/// Judges the creation of a resource that cannot be created.
pub(super) fn create<T: std::fmt::Display>(action: &'static str, outcome: ecs::Result<T>) -> ActionAccess {
    match outcome {
        Ok(created) => ActionAccess {
            action,
            access: Access::Failed(format!(
                "the cloud created {created} although its zone and its source do not exist; delete it"
            )),
        },
        Err(error) => write(action, Err(error)),
    }
}

fn of_error(error: &ecs::Error) -> Access {
    match error.kind() {
        Kind::Denied => Access::Denied(error_chain(error)),
        Kind::Unreachable
        | Kind::Ambiguous
        | Kind::Throttled
        | Kind::Expired
        | Kind::Deadline
        | Kind::Credentials
        | Kind::NonceUsed
        | Kind::Bug => Access::Failed(error_chain(error)),
        Kind::Conflict
        | Kind::OperationPending
        | Kind::TokenMismatch
        | Kind::NotFound
        | Kind::OutOfStock
        | Kind::Quota
        | Kind::Precondition
        | Kind::OutOfRange
        | Kind::Invalid => Access::Unknown(NOT_DENIED),
    }
}
