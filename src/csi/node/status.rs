//! The node's errors as gRPC codes. kubelet retries on every code; the code tells people, and
//! csi-sanity, what kind of trouble it is.

use tonic::{Code, Status};

use super::request::Invalid;
use crate::base::chain::chain;
use crate::node::{Error, FindError, HostError, Refusal};

pub(super) fn invalid(error: &Invalid) -> Status {
    let code = match error {
        Invalid::NoSuchVolume(_) | Invalid::NoSuchPath(_) => Code::NotFound,
        Invalid::Missing(_)
        | Invalid::Path { .. }
        | Invalid::Capability(_)
        | Invalid::Filesystem(_)
        | Invalid::ReadOnly { .. }
        | Invalid::Negative(_) => Code::InvalidArgument,
        Invalid::Limit => Code::OutOfRange,
    };
    Status::new(code, chain(error))
}

pub(super) fn failed(error: &Error) -> Status {
    Status::new(code(error), chain(error))
}

fn code(error: &Error) -> Code {
    match error {
        // CSI: "operation pending for volume"; the caller comes again.
        Error::Busy { .. } => Code::Aborted,
        // Both may still come true: the cloud is slow.
        Error::NoDevice { .. } | Error::NotGrown { .. } => Code::DeadlineExceeded,
        Error::Ambiguous { source, .. } => match source {
            FindError::Duplicate { .. } | FindError::Stale { .. } => Code::FailedPrecondition,
        },
        Error::Refused { refusal, .. } => refused(refusal),
        Error::NotHere { .. } => Code::NotFound,
        Error::Broken { .. } | Error::NoCapability { .. } => Code::FailedPrecondition,
        Error::MountOptions { .. } => Code::InvalidArgument,
        Error::Tool { .. } => Code::Internal,
        Error::Host { source, .. } => match source {
            HostError::Late { .. } => Code::DeadlineExceeded,
            HostError::Io { .. }
            | HostError::Probe { .. }
            | HostError::Unclear { .. }
            | HostError::Changed { .. }
            | HostError::Format { .. } => Code::Internal,
        },
    }
}

fn refused(refusal: &Refusal) -> Code {
    match refusal {
        // CSI: "volume already staged/published but incompatible".
        Refusal::Incompatible { .. } => Code::AlreadyExists,
        Refusal::WrongFilesystem { .. }
        | Refusal::ForeignData { .. }
        | Refusal::Held { .. }
        | Refusal::BlankReadOnly { .. }
        | Refusal::MountedElsewhere { .. }
        | Refusal::Occupied { .. }
        | Refusal::BadTarget { .. }
        | Refusal::NotStaged { .. }
        | Refusal::StagedReadOnly { .. }
        | Refusal::SingleTarget { .. }
        | Refusal::MixedAccess { .. }
        | Refusal::GrowReadOnly { .. } => Code::FailedPrecondition,
    }
}
