//! Errors of the disk services, with the resources that they concern.

use ecs::poll::WaitError;

use crate::model::{DiskId, Failure, FailureKind, InstanceId, SnapshotId, tag};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("disk {disk} does not exist in this region, or the account has no access to it")]
    NoSuchDisk { disk: DiskId },
    #[error("snapshot {snapshot} does not exist in this region, or the account has no access to it")]
    NoSuchSnapshot { snapshot: SnapshotId },
    #[error("disk {disk} cannot be attached to node {node}: node {holder} holds it")]
    InUseElsewhere {
        disk: DiskId,
        node: InstanceId,
        holder: InstanceId,
    },
    #[error("{name:?} already exists as {existing} and differs from the request: {differences}")]
    AlreadyExists {
        name: String,
        existing: String,
        differences: String,
    },
    #[error("no disk can be created for {name:?}: {reasons}")]
    OutOfStock { name: String, reasons: String },
    #[error("no size satisfies the request for {name:?}: {reasons}")]
    OutOfRange { name: String, reasons: String },
    #[error("disk {disk} cannot be attached to node {node}: the node has reached its attach limit{counts}")]
    AttachLimitExceeded {
        disk: DiskId,
        node: InstanceId,
        counts: String,
        source: ecs::Error,
    },
    #[error(
        "cannot create a snapshot of disk {disk}: it was never attached, and the cloud creates snapshots \
         only of disks that once were"
    )]
    NeverAttached { disk: DiskId, source: ecs::Error },
    #[error(
        "whether an earlier attempt has created {name:?} is not resolved yet; the last failure is {}: {}",
        .source.failure().name(),
        .source.failure().advice()
    )]
    CreationUnresolved { name: String, source: Box<Self> },
    #[error(
        "disk {disk} is not deleted: a snapshot is requested before its deletion, and is not complete (remove the tag {} \
         of the disk to delete it without one)",
        tag::DELETION_SNAPSHOT_DAYS
    )]
    NotDeleted { disk: DiskId, source: Box<Self> },
    /// A failure that callers do not distinguish further.
    #[error("{text}")]
    Rejected {
        failure: Failure,
        text: String,
        source: Option<ecs::Error>,
    },
    #[error("cannot {step}")]
    Wait { step: String, source: WaitError },
    #[error("cannot {step}")]
    Cloud { step: String, source: ecs::Error },
}

impl Error {
    pub fn failure(&self) -> Failure {
        match self {
            Self::NoSuchDisk { .. } => Failure::NoSuchDisk,
            Self::NoSuchSnapshot { .. } => Failure::NoSuchSnapshot,
            Self::InUseElsewhere { .. } => Failure::DiskInUseElsewhere,
            Self::AlreadyExists { .. } => Failure::NameConflict,
            Self::OutOfStock { .. } => Failure::OutOfStock,
            Self::OutOfRange { .. } => Failure::OutOfRange,
            Self::AttachLimitExceeded { .. } => Failure::AttachLimitExceeded,
            Self::NeverAttached { .. } => Failure::NeverAttached,
            Self::CreationUnresolved { .. } => Failure::CreationUnresolved,
            Self::NotDeleted { source, .. } => source.failure(),
            Self::Rejected { failure, .. } => *failure,
            Self::Wait { source, .. } => match source {
                WaitError::Deadline { .. } | WaitError::Overdue { .. } => Failure::TimedOut,
                WaitError::Cloud(source) => Failure::from(source.as_ref()),
                WaitError::Unproven { .. } => Failure::AbsenceUnproven,
            },
            Self::Cloud { source, .. } => Failure::from(source),
        }
    }

    pub fn failure_kind(&self) -> FailureKind {
        self.failure().kind()
    }
}

pub(super) fn rejected(failure: Failure, text: impl Into<String>, source: impl Into<Option<ecs::Error>>) -> Error {
    let (text, source) = (text.into(), source.into());
    Error::Rejected { failure, text, source }
}

pub(super) fn cloud(step: impl Into<String>) -> impl FnOnce(ecs::Error) -> Error {
    let step = step.into();
    move |source| Error::Cloud { step, source }
}

pub(super) fn wait(step: impl Into<String>) -> impl FnOnce(WaitError) -> Error {
    let step = step.into();
    move |source| Error::Wait { step, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error_chain;

    fn forbidden(cloud_code: &str) -> Error {
        Error::Cloud {
            step: "attach disk d-1 to node i-1".to_owned(),
            source: ecs::Error::from_response("AttachDisk", 403, cloud_code).with_request_id("R-1"),
        }
    }

    #[test]
    fn cloud_codes_map_to_failure_kinds() {
        for (cloud_code, kind) in [
            ("Forbidden.RAM", FailureKind::PermissionDenied),
            ("Throttling", FailureKind::Unavailable),
            ("InternalError", FailureKind::Unavailable),
            ("InvalidOperation.Conflict", FailureKind::Aborted),
            ("QuotaExceed.DiskCapacity", FailureKind::ResourceExhausted),
            ("ResourcesNotInSameZone", FailureKind::FailedPrecondition),
            ("QuotaExceed.Tags", FailureKind::InvalidArgument),
        ] {
            assert_eq!(forbidden(cloud_code).failure_kind(), kind, "{cloud_code}");
        }
    }

    #[test]
    fn error_chain_has_step_disk_node_code_and_request_id() {
        assert_eq!(
            error_chain(&forbidden("Forbidden.RAM")),
            "cannot attach disk d-1 to node i-1: AttachDisk failed with Forbidden.RAM (HTTP 403, \
             RequestId R-1)"
        );
    }
}
