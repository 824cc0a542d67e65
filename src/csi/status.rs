//! Maps errors of requests, disks and the node to gRPC statuses.
//!
//! For external-provisioner, `CANCELLED`, `DEADLINE_EXCEEDED`, `UNAVAILABLE` and `ABORTED` mean that the operation may
//! be in progress: it repeats the call unchanged. Any other code is final: with `WaitForFirstConsumer` the scheduler
//! chooses another node. So these four codes are only for operations that may be in progress. external-resizer treats
//! `FAILED_PRECONDITION` as "offline expansion only"; external-attacher and kubelet retry on any code.

use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

use super::request::error as request;
use crate::base::error_chain;
use crate::model::{Failure, FailureKind};
use crate::{disk, node};

impl From<disk::Error> for Status {
    fn from(error: disk::Error) -> Self {
        with_advice(error.failure(), &error_chain(&error))
    }
}

impl From<node::Error> for Status {
    fn from(error: node::Error) -> Self {
        with_advice(error.failure(), &error_chain(&error))
    }
}

/// Without advice: the message names the allowed values.
impl From<request::Error> for Status {
    fn from(error: request::Error) -> Self {
        let failure = error.failure;
        named(code(failure.kind()), failure, format!("{}: {error}", failure.name()))
    }
}

/// The status of a failed expansion. On `FAILED_PRECONDITION`, external-resizer retries only once the volume is
/// detached. So any other precondition is `INTERNAL`, with its own failure name, which is retried.
pub(crate) fn for_expansion(error: &disk::Error) -> Status {
    let failure = error.failure();
    named(expansion_code(failure), failure, message(failure, &error_chain(error)))
}

fn expansion_code(failure: Failure) -> Code {
    match code(failure.kind()) {
        Code::FailedPrecondition if failure != Failure::OfflineExpansionOnly => Code::Internal,
        code => code,
    }
}

pub(crate) fn with_advice(failure: Failure, text: &str) -> Status {
    named(code(failure.kind()), failure, message(failure, text))
}

pub(crate) fn message(failure: Failure, text: &str) -> String {
    format!("{}: {text}; {}", failure.name(), failure.advice())
}

/// Metadata key of the failure name, for programs.
const FAILURE: &str = "diskplugin-failure";

fn named(code: Code, failure: Failure, message: String) -> Status {
    let mut status = Status::new(code, message);
    let name = MetadataValue::from_static(failure.name());
    status.metadata_mut().insert(FAILURE, name);
    status
}

pub fn failure(status: &Status) -> Option<Failure> {
    let name = status.metadata().get(FAILURE)?;
    let mut all = Failure::ALL.iter().copied();
    all.find(|failure| name == failure.name())
}

/// The status with the failure name of its code; `None` if it already has a name.
pub(super) fn with_name_of_code(status: &Status) -> Option<Status> {
    if failure(status).is_some() {
        return None;
    }
    let (code, failure) = *DEFAULT_FAILURES.iter().find(|(code, _)| *code == status.code())?;
    Some(named(
        code,
        failure,
        format!("{}: {}", failure.name(), status.message()),
    ))
}

/// Failures of requests that were rejected before an operation. Other codes come from the protocol.
const DEFAULT_FAILURES: [(Code, Failure); 12] = [
    (Code::InvalidArgument, Failure::BadRequest),
    (Code::NotFound, Failure::NoSuchResource),
    (Code::AlreadyExists, Failure::NameConflict),
    (Code::FailedPrecondition, Failure::InvalidState),
    (Code::ResourceExhausted, Failure::NoSuitableZone),
    (Code::OutOfRange, Failure::OutOfRange),
    (Code::Unavailable, Failure::ShuttingDown),
    (Code::Aborted, Failure::OperationPending),
    (Code::DeadlineExceeded, Failure::TimedOut),
    (Code::PermissionDenied, Failure::AccessDenied),
    (Code::Unauthenticated, Failure::NoCredentials),
    (Code::Internal, Failure::DriverBug),
];

pub(super) fn code(kind: FailureKind) -> Code {
    (kind as i32).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_each_failure_equals_its_documented_code() {
        for failure in Failure::ALL {
            let kind = failure.kind();
            assert_eq!(format!("{:?}", code(kind)), format!("{kind:?}"), "{}", failure.name());
        }
    }

    #[test]
    fn only_offline_expansion_is_a_failed_precondition_of_expansion() {
        for failure in Failure::ALL {
            let is = expansion_code(*failure) == Code::FailedPrecondition;
            assert_eq!(is, *failure == Failure::OfflineExpansionOnly, "{}", failure.name());
        }
        assert_eq!(expansion_code(Failure::AccountInArrears), Code::Internal);
        assert_eq!(expansion_code(Failure::OutOfRange), Code::OutOfRange);
        assert_eq!(expansion_code(Failure::NodeStopped), Code::Aborted);
    }

    #[test]
    fn an_invalid_request_has_the_code_and_name_of_its_reason() {
        use request::Error;
        for (error, code, name) in [
            (Error::missing("name"), Code::InvalidArgument, Failure::BadRequest),
            (
                Error::not_found("volume_id", &"odd"),
                Code::NotFound,
                Failure::NoSuchResource,
            ),
            (Error::token("x"), Code::Aborted, Failure::StalePageToken),
            (
                Error::no_zone("zone", "none"),
                Code::ResourceExhausted,
                Failure::NoSuitableZone,
            ),
        ] {
            let text = format!("{}: {error}", name.name());
            let status: Status = error.into();
            assert_eq!((status.code(), failure(&status)), (code, Some(name)));
            assert_eq!(status.message(), text);
        }
    }

    #[test]
    fn a_status_gets_the_failure_name_of_its_code_unless_it_has_one() {
        let bare = Status::invalid_argument("name is missing");
        let named = with_name_of_code(&bare).unwrap();
        assert_eq!(named.message(), "BAD_REQUEST: name is missing");
        assert_eq!(named.code(), Code::InvalidArgument);
        assert!(with_name_of_code(&named).is_none());
        assert_eq!(failure(&named), Some(Failure::BadRequest));
        // The name in the message does not count.
        let quoted = Status::invalid_argument("DRIVER_BUG: is the name");
        assert_eq!(failure(&quoted), None);
        assert_eq!(failure(&with_name_of_code(&quoted).unwrap()), Some(Failure::BadRequest));
        assert!(with_name_of_code(&Status::unimplemented("no such call")).is_none());
    }

    #[test]
    fn errors_of_the_node_have_code_and_message() {
        let refused = |failure, reason: &str| {
            let error = node::Error::new(failure, "volume d-bp1: staging is refused".to_owned());
            error.with_source(node::PlanError::new(failure, reason.to_owned()))
        };
        let foreign = refused(
            Failure::ForeignData,
            "/dev/vdb (254:16) is neither blank nor formatted with ext4: it contains a gpt partition table",
        );
        let status: Status = foreign.into();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!(
            status.message(),
            "FOREIGN_DATA: volume d-bp1: staging is refused: /dev/vdb (254:16) is neither blank nor \
             formatted with ext4: it contains a gpt partition table; examine its content; wipe the disk manually only if \
             nobody needs it, or recreate the PersistentVolume with the right fsType \
             (docs/guides/foreign-data.md)"
        );
        let incompatible = refused(Failure::StagingConflict, "the volume is already at /staging");
        let busy = refused(Failure::OperationPending, "staging for 3 s");
        for (error, code) in [(incompatible, Code::AlreadyExists), (busy, Code::Aborted)] {
            let status: Status = error.into();
            assert_eq!(status.code(), code);
        }
    }
}
