//! How a verb can fail: what, for which disk and node, and what to do next.

use super::Incompatible;
use crate::cloud::view::WaitError;
use crate::cloud::{self, Condition};
use crate::model::{
    ClusterId, DiskId, Failure, InstanceId, Meaning, SnapshotGroupId, SnapshotId, TaskId,
};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("disk {disk} does not exist in this region, or this account may not see it")]
    NoSuchDisk { disk: DiskId },
    #[error("snapshot {snapshot} does not exist in this region, or this account may not see it")]
    NoSuchSnapshot { snapshot: SnapshotId },
    #[error("node {node} does not exist in this region, so disk {disk} cannot be attached to it")]
    NoSuchNode { node: InstanceId, disk: DiskId },
    #[error(
        "{what} is not deleted: its tag {tag} is {}, and this driver deletes only what cluster \
         {cluster} created",
        owner.as_deref().unwrap_or("missing")
    )]
    NotOurs {
        what: String,
        tag: &'static str,
        owner: Option<String>,
        cluster: ClusterId,
    },
    #[error("disk {disk} cannot be attached to node {node}: node {holder} holds it")]
    InUseElsewhere {
        disk: DiskId,
        node: InstanceId,
        holder: InstanceId,
    },
    #[error("disk {disk} is not deleted: it is attached to {holders}")]
    StillAttached { disk: DiskId, holders: String },
    #[error("{name:?} already exists as {existing} and differs from the request: {differences}")]
    Exists {
        name: String,
        existing: String,
        differences: String,
    },
    #[error("no disk can be created for {name:?}: {reasons}")]
    OutOfStock { name: String, reasons: String },
    #[error("no size satisfies the request for {name:?}: {reasons}")]
    OutOfRange { name: String, reasons: String },
    #[error(transparent)]
    Incompatible(#[from] Incompatible),
    #[error("disk {disk} cannot be attached to node {node}: the node takes no more disks{counts}")]
    NodeFull {
        disk: DiskId,
        node: InstanceId,
        counts: String,
        source: cloud::Error,
    },
    #[error("the cloud gave up attaching disk {disk} to node {node}: the disk is Available again")]
    FellBack { disk: DiskId, node: InstanceId },
    #[error(
        "cannot detach disk {disk} from node {node}: the deadline passed while waiting; last seen: {last}"
    )]
    StillDetaching {
        disk: DiskId,
        node: InstanceId,
        last: String,
    },
    #[error("snapshot {snapshot} failed in the cloud; {next}")]
    SnapshotFailed {
        snapshot: SnapshotId,
        next: &'static str,
    },
    #[error(
        "no snapshot can be taken of disk {disk}: it was never attached, and the cloud takes snapshots \
         only of disks that once were"
    )]
    NeverAttached { disk: DiskId, source: cloud::Error },
    #[error("the point in time of {what} is not cut yet")]
    NotCut { what: String },
    #[error("snapshot {snapshot} is not deleted: {why}")]
    SnapshotHeld {
        snapshot: SnapshotId,
        why: &'static str,
        source: cloud::Error,
    },
    #[error(
        "snapshot {snapshot} is not deleted: it is part of snapshot group {group}, which holds its \
         snapshots together"
    )]
    InGroup {
        snapshot: SnapshotId,
        group: SnapshotGroupId,
    },
    #[error("snapshot group {group} does not exist in this region, or this account may not see it")]
    NoSuchGroup { group: SnapshotGroupId },
    #[error("the volumes of {name:?} cannot be snapshotted together: {why}")]
    NotGroupable {
        name: String,
        why: &'static str,
        source: Option<cloud::Error>,
    },
    #[error("snapshot group {group} failed in the cloud: {members}; {next}")]
    GroupFailed {
        group: SnapshotGroupId,
        members: String,
        next: &'static str,
    },
    #[error("snapshot_ids do not fit snapshot group {group}: {differences}")]
    OtherMembers {
        group: SnapshotGroupId,
        differences: String,
    },
    #[error("snapshot group {group} is not deleted whole: {kept}")]
    GroupHeld {
        group: SnapshotGroupId,
        kept: String,
    },
    #[error("snapshot {snapshot} is not ready to be used yet")]
    SnapshotNotReady { snapshot: SnapshotId },
    #[error("disk {disk} cannot become {wanted}: {reason}")]
    CannotBecome {
        disk: DiskId,
        wanted: String,
        reason: String,
    },
    #[error("disk {disk} cannot be changed like this")]
    Unchangeable { disk: DiskId, source: cloud::Error },
    #[error(
        "disk {disk} was changed not long ago, and the cloud lets some time pass between two changes \
         of the category"
    )]
    Cooling { disk: DiskId, source: cloud::Error },
    #[error("the cloud gave up changing disk {disk} (task {task}), which is as it was before")]
    TaskFailed { disk: DiskId, task: TaskId },
    #[error("disk {disk} does not grow while {why}")]
    CannotGrow {
        disk: DiskId,
        why: String,
        source: cloud::Error,
    },
    #[error(
        "the deadline passed before it was the turn of disk {disk}: other disks were being {verb} node \
         {node} one by one"
    )]
    Queue {
        disk: DiskId,
        verb: &'static str,
        node: InstanceId,
    },
    #[error(
        "the cloud lists no {what} at all, while {what} of this cluster exist: its index lags, or the access key may not \
         describe them"
    )]
    EmptyResponse { what: &'static str },
    #[error("whether an earlier attempt has created {name:?} is not resolved yet")]
    CreationUnresolved { name: String, source: Box<Self> },
    #[error("cannot {step}")]
    Wait { step: String, source: WaitError },
    #[error("cannot {step}")]
    Cloud { step: String, source: cloud::Error },
}

impl Error {
    /// The name that people know it by, with what it means and what to do.
    pub fn failure(&self) -> Failure {
        match self {
            Self::NoSuchDisk { .. } => Failure::NoSuchDisk,
            Self::NoSuchSnapshot { .. } => Failure::NoSuchSnapshot,
            Self::NoSuchNode { .. } => Failure::NoSuchNode,
            Self::NoSuchGroup { .. } => Failure::NoSuchGroup,
            Self::NotOurs { .. } => Failure::NotOurs,
            Self::InUseElsewhere { .. } => Failure::DiskInUseElsewhere,
            Self::StillAttached { .. } => Failure::DiskStillAttached,
            Self::Exists { .. } => Failure::NameTaken,
            Self::OutOfStock { .. } => Failure::OutOfStock,
            Self::OutOfRange { .. } => Failure::OutOfRange,
            Self::Incompatible(incompatible) => incompatible.failure(),
            Self::NodeFull { .. } => Failure::NodeFull,
            Self::FellBack { .. } => Failure::AttachFellBack,
            Self::StillDetaching { .. } => Failure::StillDetaching,
            Self::SnapshotFailed { .. } => Failure::SnapshotFailed,
            Self::NeverAttached { .. } => Failure::NeverAttached,
            Self::NotCut { .. } => Failure::SnapshotNotCut,
            Self::SnapshotHeld { source, .. } => source.failure(),
            // CSI: the first and the last of these are INVALID_ARGUMENT.
            Self::InGroup { .. } => Failure::SnapshotInGroup,
            Self::NotGroupable { .. } => Failure::NotGroupable,
            Self::GroupFailed { .. } => Failure::GroupFailed,
            Self::GroupHeld { .. } => Failure::GroupHeld,
            Self::OtherMembers { .. } => Failure::OtherMembers,
            Self::SnapshotNotReady { .. } => Failure::SnapshotNotReady,
            Self::CannotBecome { .. } | Self::Unchangeable { .. } => Failure::ChangeRefused,
            Self::Cooling { .. } => Failure::CoolingPeriod,
            Self::TaskFailed { .. } => Failure::ChangeFailed,
            Self::CannotGrow { source, .. } => match source.condition() {
                Condition::NodeStopped => Failure::NodeStopped,
                _ => Failure::OnlyOffline,
            },
            Self::CreationUnresolved { .. } => Failure::CreationUnresolved,
            Self::Queue { .. } => Failure::QueueTooLong,
            Self::EmptyResponse { .. } => Failure::EmptyResponse,
            Self::Wait {
                source: WaitError::Deadline { .. },
                ..
            } => Failure::DeadlinePassed,
            Self::Wait {
                source: WaitError::Cloud(source),
                ..
            } => source.failure(),
            Self::Wait {
                source: WaitError::Unproven { .. },
                ..
            } => Failure::AbsenceUnproven,
            Self::Cloud { source, .. } => source.failure(),
        }
    }

    /// What it means for the caller: that of its name.
    pub fn meaning(&self) -> Meaning {
        self.failure().meaning()
    }
}

/// Names the step of a failed call.
pub(super) fn cloud(step: impl Into<String>) -> impl FnOnce(cloud::Error) -> Error {
    let step = step.into();
    move |source| Error::Cloud { step, source }
}

/// Names the step of a failed wait.
pub(super) fn wait(step: impl Into<String>) -> impl FnOnce(WaitError) -> Error {
    let step = step.into();
    move |source| Error::Wait { step, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::chain::chain;

    fn refused(cloud_code: &str) -> Error {
        Error::Cloud {
            step: "attach disk d-1 to node i-1".to_owned(),
            source: cloud::Error::answered("AttachDisk", 403, cloud_code).with_request_id("R-1"),
        }
    }

    #[test]
    fn every_kind_of_refusal_has_its_meaning() {
        for (cloud_code, meaning) in [
            ("Forbidden.RAM", Meaning::Denied),
            ("Throttling", Meaning::Unclear),
            ("InternalError", Meaning::Unclear),
            ("InvalidOperation.Conflict", Meaning::Busy),
            ("QuotaExceed.DiskCapacity", Meaning::Exhausted),
            ("ResourcesNotInSameZone", Meaning::Precondition),
            ("QuotaExceed.Tags", Meaning::Refused),
        ] {
            assert_eq!(refused(cloud_code).meaning(), meaning, "{cloud_code}");
        }
    }

    #[test]
    fn the_chain_tells_step_disk_node_code_and_request() {
        assert_eq!(
            chain(&refused("Forbidden.RAM")),
            "cannot attach disk d-1 to node i-1: AttachDisk failed with Forbidden.RAM (HTTP 403, \
             RequestId R-1)"
        );
    }
}
