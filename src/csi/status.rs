//! Errors to gRPC codes: of requests, disks and the node. With what the sidecars do.
//!
//! external-provisioner takes `CANCELLED`, `DEADLINE_EXCEEDED`, `UNAVAILABLE` and `ABORTED` for "may
//! still be under way": it repeats the call unchanged, for ever. Any other code is final: with
//! `WaitForFirstConsumer` the scheduler chooses again. So the former are kept for what may really be
//! under way. external-resizer reads `FAILED_PRECONDITION` as "only offline"; external-attacher and kubelet repeat
//! whatever the code.

use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

use super::request::error as request;
use crate::base::chain::chain;
use crate::model::{Failure, Meaning};
use crate::{disk, node};

impl From<disk::Error> for Status {
    fn from(error: disk::Error) -> Self {
        named(error.failure(), &chain(&error))
    }
}

impl From<node::Error> for Status {
    fn from(error: node::Error) -> Self {
        named(error.failure(), &chain(&error))
    }
}

/// What a refused request must have instead is in the text.
impl From<request::Error> for Status {
    fn from(error: request::Error) -> Self {
        use request::Error as Refused;
        let failure = match error {
            Refused::Missing(_)
            | Refused::TooLarge(_)
            | Refused::Value(..)
            | Refused::UnknownKey(..)
            | Refused::Negative(..)
            | Refused::Malformed(..)
            | Refused::Unsupported(..) => Failure::BadRequest,
            Refused::NotFound(..) => Failure::NoSuchResource,
            Refused::Token(_) => Failure::StaleToken,
            Refused::NoZone(..) => Failure::NoZoneFits,
        };
        without_todo(code(failure.meaning()), failure, &error.to_string())
    }
}

/// The status of a growth that failed. external-resizer takes `FAILED_PRECONDITION` for "only while no
/// node has it", and asks again only when the volume is free: so any other precondition is
/// `INTERNAL`, under its own name, and is repeated.
pub(crate) fn of_growth(error: &disk::Error) -> Status {
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

fn without_todo(code: Code, failure: Failure, text: &str) -> Status {
    let text = format!("{}: {text}", failure.name());
    marked(Status::new(code, text), failure)
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
    Some(without_todo(status.code(), failure, status.message()))
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
    fn a_refused_request_has_one_code_for_each_reason_and_its_name() {
        use request::Error;
        for (error, code, name) in [
            (
                Error::Missing("name".into()),
                Code::InvalidArgument,
                Failure::BadRequest,
            ),
            (
                Error::NotFound("volume_id".into(), "odd".to_owned()),
                Code::NotFound,
                Failure::NoSuchResource,
            ),
            (
                Error::Token("x".to_owned()),
                Code::Aborted,
                Failure::StaleToken,
            ),
            (
                Error::NoZone("zone".into(), "none".to_owned()),
                Code::ResourceExhausted,
                Failure::NoZoneFits,
            ),
        ] {
            let text = format!("{}: {error}", name.name());
            let status: Status = error.into();
            assert_eq!((status.code(), failure(&status)), (code, Some(name)));
            assert_eq!(status.message(), text);
        }
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

    #[test]
    fn the_code_tells_the_kind_of_trouble_and_the_text_the_whole_story() {
        let volume = || "d-bp1".parse().unwrap();
        let refused = |refusal| node::Error::Refused {
            volume: volume(),
            verb: "staging",
            refusal,
        };
        let foreign = refused(node::Refusal::ForeignData {
            device: "/dev/vdb (254:16)".to_owned(),
            found: "a gpt partition table".to_owned(),
            wanted: crate::model::Filesystem::Ext4,
        });
        let status: Status = foreign.into();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!(
            status.message(),
            "FOREIGN_DATA: volume d-bp1: staging is refused: /dev/vdb (254:16) is neither blank nor \
             has it ext4: it holds a gpt partition table; look what it is; wipe the disk by hand only if \
             nobody needs it, or make the PersistentVolume anew with the right fsType \
             (docs/guides/foreign-data.md)"
        );
        let incompatible = refused(node::Refusal::Incompatible {
            path: "/staging".into(),
            found: "writable".to_owned(),
            wanted: "read-only".to_owned(),
        });
        let busy = node::Error::Busy { volume: volume() };
        for (error, code) in [(incompatible, Code::AlreadyExists), (busy, Code::Aborted)] {
            let status: Status = error.into();
            assert_eq!(status.code(), code);
        }
    }
}
