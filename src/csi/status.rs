//! The one table from errors of the disk verbs to gRPC codes, each with what the sidecar does.
//!
//! external-provisioner takes `CANCELLED`, `DEADLINE_EXCEEDED`, `UNAVAILABLE` and `ABORTED` for "may
//! still be under way": it repeats the call unchanged, for ever. Any other code is final: with
//! `WaitForFirstConsumer` the scheduler chooses again. So the former are kept for what may really be
//! under way. external-resizer reads `FAILED_PRECONDITION` as "only offline" and `external-attacher`
//! repeats whatever the code.

use std::error::Error as StdError;

use tonic::{Code, Status};

use crate::base::chain::chain;
use crate::cloud::poll::WaitError;
use crate::cloud::{self, Kind};
use crate::disk::Error;

/// The status of a failed verb: code, whole chain of causes, and what to do.
pub(crate) fn of(error: &Error) -> Status {
    Status::new(code(error), with_hint(error))
}

/// Another call for the same volume or snapshot is running (CSI: `ABORTED`).
pub(crate) fn busy(what: &str) -> Status {
    Status::aborted(format!(
        "another call for {what} is still running; repeat this one later"
    ))
}

fn code(error: &Error) -> Code {
    match error {
        Error::NoSuchDisk { .. } | Error::NoSuchSnapshot { .. } | Error::NoSuchNode { .. } => {
            Code::NotFound
        }
        Error::NotOurs { .. }
        | Error::InUseElsewhere { .. }
        | Error::StillAttached { .. }
        | Error::SnapshotNotReady { .. } => Code::FailedPrecondition,
        Error::Exists { .. } => Code::AlreadyExists,
        Error::OutOfStock { .. } | Error::NodeFull { .. } => Code::ResourceExhausted,
        Error::OutOfRange { .. } => Code::OutOfRange,
        Error::FellBack { .. } | Error::SnapshotFailed { .. } => Code::Internal,
        Error::Queue { .. } => Code::DeadlineExceeded,
        Error::Wait {
            source: WaitError::Deadline { .. },
            ..
        } => Code::DeadlineExceeded,
        Error::Wait {
            source: WaitError::Cloud(source),
            ..
        } => of_kind(source.kind()),
        Error::Cloud { source, .. } => of_kind(source.kind()),
    }
}

fn of_kind(kind: Kind) -> Code {
    match kind {
        // It may have happened.
        Kind::Unreachable | Kind::Ambiguous | Kind::Throttled | Kind::Resign => Code::Unavailable,
        Kind::Conflict | Kind::InFlight | Kind::TokenMismatch => Code::Aborted,
        Kind::NotFound => Code::NotFound,
        Kind::OutOfStock | Kind::Quota => Code::ResourceExhausted,
        Kind::Denied => Code::PermissionDenied,
        Kind::Credentials => Code::Unauthenticated,
        Kind::Invalid => Code::InvalidArgument,
        Kind::Deadline => Code::DeadlineExceeded,
    }
}

fn with_hint(error: &Error) -> String {
    let text = chain(error);
    match root(error).and_then(hint) {
        Some(hint) => format!("{text}; {hint}"),
        None => text,
    }
}

fn root(error: &Error) -> Option<&cloud::Error> {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(cloud) = cause.downcast_ref() {
            return Some(cloud);
        }
        source = cause.source();
    }
    None
}

/// What an operator can do about an error of this kind.
fn hint(error: &cloud::Error) -> Option<&'static str> {
    match error.kind() {
        Kind::Denied => Some("check the access key and its RAM policy"),
        Kind::Credentials => Some("check the credentials Secret"),
        Kind::Unreachable => Some("check the endpoint and the network of the controller"),
        Kind::Throttled => Some("other programs of this account may use its quota up"),
        Kind::Quota => Some("raise the quota in the Quota Center, or free some of it"),
        Kind::Ambiguous
        | Kind::Conflict
        | Kind::InFlight
        | Kind::TokenMismatch
        | Kind::NotFound
        | Kind::OutOfStock
        | Kind::Resign
        | Kind::Invalid
        | Kind::Deadline => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, cloud_code: &str) -> Error {
        Error::Cloud {
            step: "attach disk d-1 to node i-1".to_owned(),
            source: cloud::Error::answered("AttachDisk", status, cloud_code).with_request_id("R-1"),
        }
    }

    #[test]
    fn every_kind_of_refusal_has_its_code() {
        for (cloud_code, code) in [
            ("Forbidden.RAM", Code::PermissionDenied),
            ("Throttling", Code::Unavailable),
            ("InternalError", Code::Unavailable),
            ("InvalidOperation.Conflict", Code::Aborted),
            ("QuotaExceed.DiskCapacity", Code::ResourceExhausted),
            ("ResourcesNotInSameZone", Code::InvalidArgument),
        ] {
            assert_eq!(of(&refused(403, cloud_code)).code(), code, "{cloud_code}");
        }
    }

    #[test]
    fn the_message_tells_step_disk_node_code_request_and_remedy() {
        assert_eq!(
            of(&refused(403, "Forbidden.RAM")).message(),
            "cannot attach disk d-1 to node i-1: AttachDisk failed with Forbidden.RAM (HTTP 403, \
             RequestId R-1); check the access key and its RAM policy"
        );
    }
}
