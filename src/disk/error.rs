//! How a verb can fail: what, for which disk and node, and what to do next.

use super::Incompatible;
use crate::cloud;
use crate::cloud::view::WaitError;
use crate::model::{ClusterId, DiskId, InstanceId, SnapshotGroupId, SnapshotId, TaskId};

/// A verb that did not reach its state.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such disk.
    #[error("disk {disk} does not exist in this region, or this account may not see it")]
    NoSuchDisk {
        /// The disk.
        disk: DiskId,
    },
    /// There is no such snapshot.
    #[error("snapshot {snapshot} does not exist in this region, or this account may not see it")]
    NoSuchSnapshot {
        /// The snapshot.
        snapshot: SnapshotId,
    },
    /// There is no such instance.
    #[error("node {node} does not exist in this region, so disk {disk} cannot be attached to it")]
    NoSuchNode {
        /// The instance.
        node: InstanceId,
        /// The disk.
        disk: DiskId,
    },
    /// The resource carries another cluster's tag, or none.
    #[error(
        "{what} is not deleted: its tag {tag} is {}, and this driver deletes only what cluster \
         {cluster} created",
        owner.as_deref().unwrap_or("missing")
    )]
    NotOurs {
        /// The disk or snapshot, in words.
        what: String,
        /// The tag's key.
        tag: &'static str,
        /// Its value.
        owner: Option<String>,
        /// This driver's cluster.
        cluster: ClusterId,
    },
    /// Another instance holds the disk.
    #[error("disk {disk} cannot be attached to node {node}: node {holder} holds it")]
    InUseElsewhere {
        /// The disk.
        disk: DiskId,
        /// Who wanted it.
        node: InstanceId,
        /// Who has it.
        holder: InstanceId,
    },
    /// The disk is attached, and so not deleted.
    #[error("disk {disk} is not deleted: it is attached to {holders}")]
    StillAttached {
        /// The disk.
        disk: DiskId,
        /// Who has it.
        holders: String,
    },
    /// The name is taken by something else.
    #[error("{name:?} already exists as {existing} and differs from the request: {differences}")]
    Exists {
        /// The CSI name.
        name: String,
        /// What has it.
        existing: String,
        /// What differs, both sides.
        differences: String,
    },
    /// No category in no zone could be had.
    #[error("no disk can be created for {name:?}: {reasons}")]
    OutOfStock {
        /// The CSI name.
        name: String,
        /// Each zone and category with its reason.
        reasons: String,
    },
    /// No category has the wanted size.
    #[error("no size satisfies the request for {name:?}: {reasons}")]
    OutOfRange {
        /// The CSI name or the disk.
        name: String,
        /// Each category with its sizes.
        reasons: String,
    },
    /// The disk and the node do not go together, or not in this way.
    #[error(transparent)]
    Incompatible(#[from] Incompatible),
    /// The node takes no more disks.
    #[error("disk {disk} cannot be attached to node {node}: the node takes no more disks{counts}")]
    NodeFull {
        /// The disk.
        disk: DiskId,
        /// The node.
        node: InstanceId,
        /// How many it takes and has, in words, as far as is known.
        counts: String,
        /// The cloud's words.
        #[source]
        source: cloud::Error,
    },
    /// The attachment was accepted and then failed in the cloud.
    #[error("the cloud gave up attaching disk {disk} to node {node}: the disk is Available again")]
    FellBack {
        /// The disk.
        disk: DiskId,
        /// The node.
        node: InstanceId,
    },
    /// The node does not let go of the disk.
    #[error(
        "cannot detach disk {disk} from node {node}: the deadline passed while waiting; last seen: {last}"
    )]
    StillDetaching {
        /// The disk.
        disk: DiskId,
        /// The node.
        node: InstanceId,
        /// The last look, in words.
        last: String,
    },
    /// The snapshot never came about.
    #[error("snapshot {snapshot} failed in the cloud; {next}")]
    SnapshotFailed {
        /// The snapshot.
        snapshot: SnapshotId,
        /// What to do, or what is done.
        next: &'static str,
    },
    /// The cloud takes no snapshot of a disk that nobody ever wrote to.
    #[error(
        "no snapshot can be taken of disk {disk}: it was never attached, and the cloud takes snapshots \
         only of disks that once were"
    )]
    NeverAttached {
        /// The disk.
        disk: DiskId,
        /// The cloud's words.
        #[source]
        source: cloud::Error,
    },
    /// The point in time is not cut yet, so that there is no snapshot to tell of.
    #[error("the point in time of {what} is not cut yet")]
    NotCut {
        /// The snapshot or group, in words.
        what: String,
    },
    /// Somebody else keeps the snapshot.
    #[error("snapshot {snapshot} is not deleted: {why}")]
    SnapshotHeld {
        /// The snapshot.
        snapshot: SnapshotId,
        /// Who keeps it.
        why: &'static str,
        /// The cloud's words.
        #[source]
        source: cloud::Error,
    },
    /// The snapshot goes only with its group.
    #[error(
        "snapshot {snapshot} is not deleted: it is part of snapshot group {group}, which holds its \
         snapshots together"
    )]
    InGroup {
        /// The snapshot.
        snapshot: SnapshotId,
        /// Its group.
        group: SnapshotGroupId,
    },
    /// There is no such group.
    #[error("snapshot group {group} does not exist in this region, or this account may not see it")]
    NoSuchGroup {
        /// The group.
        group: SnapshotGroupId,
    },
    /// These disks cannot be cut at one instant.
    #[error("the volumes of {name:?} cannot be snapshotted together: {why}")]
    NotGroupable {
        /// The CSI name.
        name: String,
        /// What must change.
        why: &'static str,
        /// The cloud's words, where it was asked.
        #[source]
        source: Option<cloud::Error>,
    },
    /// The group never came about, or not all of it.
    #[error("snapshot group {group} failed in the cloud: {members}; {next}")]
    GroupFailed {
        /// The group.
        group: SnapshotGroupId,
        /// Its members that failed, in words.
        members: String,
        /// What to do, or what is done.
        next: &'static str,
    },
    /// The group has other members than the caller says.
    #[error("snapshot_ids do not fit snapshot group {group}: {differences}")]
    OtherMembers {
        /// The group.
        group: SnapshotGroupId,
        /// What differs.
        differences: String,
    },
    /// Some of its snapshots had to stay.
    #[error("snapshot group {group} is not deleted whole: {kept}")]
    GroupHeld {
        /// The group.
        group: SnapshotGroupId,
        /// Which stay and why, in words.
        kept: String,
    },
    /// The snapshot is not usable yet.
    #[error("snapshot {snapshot} is not ready to be used yet")]
    SnapshotNotReady {
        /// The snapshot.
        snapshot: SnapshotId,
    },
    /// The disk cannot be what is wanted, by the rules of the cloud.
    #[error("disk {disk} cannot become {wanted}: {reason}")]
    CannotBecome {
        /// The disk.
        disk: DiskId,
        /// What, in words.
        wanted: String,
        /// Why, with the bound.
        reason: String,
    },
    /// The cloud will not change the disk like this.
    #[error("disk {disk} cannot be changed like this")]
    Unchangeable {
        /// The disk.
        disk: DiskId,
        /// The cloud's words.
        #[source]
        source: cloud::Error,
    },
    /// It was changed not long ago.
    #[error(
        "disk {disk} was changed not long ago, and the cloud lets some time pass between two changes \
         of the category"
    )]
    Cooling {
        /// The disk.
        disk: DiskId,
        /// The cloud's words.
        #[source]
        source: cloud::Error,
    },
    /// The change was begun and then failed in the cloud.
    #[error("the cloud gave up changing disk {disk} (task {task}), which is as it was before")]
    TaskFailed {
        /// The disk.
        disk: DiskId,
        /// The task.
        task: TaskId,
    },
    /// It grows only while no node has it.
    #[error("disk {disk} does not grow while it is attached to {holders}")]
    OnlyOffline {
        /// The disk.
        disk: DiskId,
        /// Who has it.
        holders: String,
        /// The cloud's words.
        #[source]
        source: cloud::Error,
    },
    /// It grows only while its node runs.
    #[error("disk {disk} does not grow while {holders} does not run")]
    NodeStopped {
        /// The disk.
        disk: DiskId,
        /// Who has it.
        holders: String,
        /// The cloud's words.
        #[source]
        source: cloud::Error,
    },
    /// Too many are at it.
    #[error(
        "the deadline passed before it was the turn of disk {disk}: other disks were being {verb} node \
         {node} one by one"
    )]
    Queue {
        /// The disk.
        disk: DiskId,
        /// "attached to" or "detached from".
        verb: &'static str,
        /// The node.
        node: InstanceId,
    },
    /// The cloud lists none, and it is known that there are some.
    #[error(
        "the cloud lists no {what} at all, while {what} of this cluster exist: its index lags, or the access key may not \
         describe them"
    )]
    EmptyResponse {
        /// Disks or snapshots.
        what: &'static str,
    },
    /// An earlier attempt may have created the resource, and the attempts to find out have failed.
    #[error("whether an earlier attempt has created {name:?} is not resolved yet")]
    CreationUnresolved {
        /// The CSI name.
        name: String,
        /// Why not.
        #[source]
        source: Box<Self>,
    },
    /// A wait did not end well.
    #[error("cannot {step}")]
    Wait {
        /// The step and its disk, in words.
        step: String,
        /// Why.
        #[source]
        source: WaitError,
    },
    /// A call failed.
    #[error("cannot {step}")]
    Cloud {
        /// The step and its disk, in words.
        step: String,
        /// Why.
        #[source]
        source: cloud::Error,
    },
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
