//! The one table from failed disk verbs to gRPC codes, each with what the sidecar does.
//!
//! external-provisioner takes `CANCELLED`, `DEADLINE_EXCEEDED`, `UNAVAILABLE` and `ABORTED` for "may
//! still be under way": it repeats the call unchanged, for ever. Any other code is final: with
//! `WaitForFirstConsumer` the scheduler chooses again. So the former are kept for what may really be
//! under way. external-resizer reads `FAILED_PRECONDITION` as "only offline"; external-attacher
//! repeats whatever the code.

use tonic::{Code, Status};

use crate::base::chain::chain;
use crate::disk::{Error, Meaning};

/// The status of a failed verb: code, whole chain of causes, and what to do.
pub(crate) fn of(error: &Error) -> Status {
    let text = chain(error);
    let text = match error.hint() {
        Some(hint) => format!("{text}; {hint}"),
        None => text,
    };
    Status::new(code(error.meaning()), text)
}

/// Another call for the same volume or snapshot is running (CSI: `ABORTED`).
pub(crate) fn busy(what: &str) -> Status {
    Status::aborted(format!(
        "another call for {what} is still running; repeat this one later"
    ))
}

fn code(meaning: Meaning) -> Code {
    match meaning {
        Meaning::NotFound => Code::NotFound,
        Meaning::AlreadyExists => Code::AlreadyExists,
        Meaning::Precondition => Code::FailedPrecondition,
        // The provisioner gives the node back to the scheduler.
        Meaning::Exhausted => Code::ResourceExhausted,
        Meaning::OutOfRange => Code::OutOfRange,
        Meaning::Unclear => Code::Unavailable,
        Meaning::Busy => Code::Aborted,
        Meaning::Deadline => Code::DeadlineExceeded,
        Meaning::Denied => Code::PermissionDenied,
        Meaning::NoCredentials => Code::Unauthenticated,
        Meaning::Refused => Code::InvalidArgument,
        Meaning::Failed => Code::Internal,
    }
}
