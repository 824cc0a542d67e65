//! The one table from failed disk verbs to gRPC codes, each with what the sidecar does.
//!
//! external-provisioner takes `CANCELLED`, `DEADLINE_EXCEEDED`, `UNAVAILABLE` and `ABORTED` for "may
//! still be under way": it repeats the call unchanged, for ever. Any other code is final: with
//! `WaitForFirstConsumer` the scheduler chooses again. So the former are kept for what may really be
//! under way. external-resizer reads `FAILED_PRECONDITION` as "only offline"; external-attacher
//! repeats whatever the code.

use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

use crate::base::chain::chain;
use crate::disk::Error;
use crate::model::{Failure, Meaning};

/// The status of a failed verb: code, whole chain of causes, and what to do.
pub(crate) fn of(error: &Error) -> Status {
    named(error.failure(), &chain(error))
}

/// The status of a growth that failed. external-resizer takes `FAILED_PRECONDITION` for "only while no
/// node has it", and asks again only when the volume is free: so any other precondition is
/// `INTERNAL`, under its own name, and is repeated.
pub(crate) fn of_growth(error: &Error) -> Status {
    let failure = error.failure();
    coded(growth_code(failure), failure, &chain(error))
}

fn growth_code(failure: Failure) -> Code {
    match code(failure.meaning()) {
        Code::FailedPrecondition if failure != Failure::OnlyOffline => Code::Internal,
        code => code,
    }
}

/// The status of a failure: its name, what happened, and what to do.
pub(crate) fn named(failure: Failure, text: &str) -> Status {
    coded(code(failure.meaning()), failure, text)
}

fn coded(code: Code, failure: Failure, text: &str) -> Status {
    marked(Status::new(code, message(failure, text)), failure)
}

/// What a failure says: its name, what happened, and what to do.
pub(crate) fn message(failure: Failure, text: &str) -> String {
    format!("{}: {text}; {}", failure.name(), failure.todo())
}

/// The key of the metadata that names the failure, for programs: the text is for people.
const FAILURE: &str = "diskplugin-failure";

fn marked(mut status: Status, failure: Failure) -> Status {
    let name = MetadataValue::from_static(failure.name());
    status.metadata_mut().insert(FAILURE, name);
    status
}

/// The failure that a status of this driver names.
#[must_use]
pub fn failure(status: &Status) -> Option<Failure> {
    let name = status.metadata().get(FAILURE)?;
    let mut all = Failure::ALL.iter().copied();
    all.find(|failure| name == failure.name())
}

/// The same status with a name: that of its code, if it has none of its own.
pub(super) fn with_name(status: &Status) -> Option<Status> {
    if failure(status).is_some() {
        return None;
    }
    let failure = of_code(status.code())?;
    let text = format!("{}: {}", failure.name(), status.message());
    Some(marked(Status::new(status.code(), text), failure))
}

/// What a request fails with that reached no verb. The other codes are not of this driver, or of the
/// protocol: they say themselves what they are.
const BY_CODE: [(Code, Failure); 12] = [
    (Code::InvalidArgument, Failure::BadRequest),
    (Code::NotFound, Failure::NoSuchResource),
    (Code::AlreadyExists, Failure::NameTaken),
    (Code::FailedPrecondition, Failure::StateForbids),
    (Code::ResourceExhausted, Failure::NoZoneFits),
    (Code::OutOfRange, Failure::OutOfRange),
    (Code::Unavailable, Failure::ShuttingDown),
    (Code::Aborted, Failure::CallRunning),
    (Code::DeadlineExceeded, Failure::DeadlinePassed),
    (Code::PermissionDenied, Failure::CredentialsDenied),
    (Code::Unauthenticated, Failure::NoCredentials),
    (Code::Internal, Failure::DriverBug),
];

fn of_code(code: Code) -> Option<Failure> {
    let found = BY_CODE.iter().find(|(one, _)| *one == code);
    found.map(|(_, failure)| *failure)
}

/// Another call for the same volume or snapshot is running (CSI: `ABORTED`).
pub(crate) fn busy(what: &impl std::fmt::Display) -> Status {
    let text = format!("another call for {what} is still running");
    named(Failure::CallRunning, &text)
}

pub(super) fn code(meaning: Meaning) -> Code {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_each_failure_is_the_one_that_its_table_names() {
        for failure in Failure::ALL {
            let camel = format!("{:?}", code(failure.meaning()));
            let snake: String = camel
                .chars()
                .enumerate()
                .flat_map(|(n, c)| {
                    (n > 0 && c.is_uppercase())
                        .then_some('_')
                        .into_iter()
                        .chain([c])
                })
                .collect();
            let name = failure.meaning().code_name();
            assert_eq!(snake.to_uppercase(), name, "{}", failure.name());
        }
    }

    #[test]
    fn of_a_growth_only_what_is_about_being_online_is_a_precondition() {
        for failure in Failure::ALL {
            let is = growth_code(*failure) == Code::FailedPrecondition;
            assert_eq!(is, *failure == Failure::OnlyOffline, "{}", failure.name());
        }
        assert_eq!(growth_code(Failure::AccountInArrears), Code::Internal);
        assert_eq!(growth_code(Failure::OutOfRange), Code::OutOfRange);
        assert_eq!(growth_code(Failure::NodeStopped), Code::Aborted);
    }

    #[test]
    fn a_status_without_a_name_gets_that_of_its_code_and_one_with_a_name_keeps_it() {
        let bare = Status::invalid_argument("name is missing");
        let named = with_name(&bare).unwrap();
        assert_eq!(named.message(), "BAD_REQUEST: name is missing");
        assert_eq!(named.code(), Code::InvalidArgument);
        assert!(with_name(&named).is_none());
        assert_eq!(failure(&named), Some(Failure::BadRequest));
        // What the text begins with is for people.
        let quoted = Status::invalid_argument("DRIVER_BUG: is the name");
        assert_eq!(failure(&quoted), None);
        assert_eq!(
            failure(&with_name(&quoted).unwrap()),
            Some(Failure::BadRequest)
        );
        assert!(with_name(&Status::unimplemented("no such call")).is_none());
    }
}
