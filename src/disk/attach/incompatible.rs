//! Why a disk and a node do not go together: what is refused, and for what reason.

use crate::cloud;
use crate::disk::name::of_cloud;
use crate::model::{Category, DiskId, Failure, InstanceId};

/// A disk that cannot be on a node, or not in the way that is asked for.
#[derive(Debug, thiserror::Error)]
pub enum Incompatible {
    /// The node's type does not take such disks.
    #[error(
        "disk {disk} of category {category} cannot be attached to node {node} of type {instance_type}"
    )]
    NodeType {
        /// The disk.
        disk: DiskId,
        /// Its category; "unknown" where the cloud did not say.
        category: String,
        /// The node.
        node: InstanceId,
        /// Its type; "unknown" where the cloud did not say.
        instance_type: String,
        /// The cloud's words.
        #[source]
        source: cloud::Error,
    },
    /// Such disks cannot be moved between nodes.
    #[error("disk {disk} cannot be attached to node {node}: {why}")]
    Immovable {
        /// The disk.
        disk: DiskId,
        /// The node.
        node: InstanceId,
        /// Which disks these are.
        why: &'static str,
        /// The cloud's words.
        #[source]
        source: cloud::Error,
    },
    /// It is the system disk of an instance.
    #[error(
        "disk {disk} cannot be attached to node {node}: it is a system disk, and only data disks are \
         volumes"
    )]
    System {
        /// The disk.
        disk: DiskId,
        /// The node.
        node: InstanceId,
    },
    /// Several nodes want a disk that only one can hold.
    #[error(
        "disk {disk} cannot be attached to node {node} with an access mode for several nodes: it was not \
         made to be shared, which cannot be changed"
    )]
    OneNode {
        /// The disk.
        disk: DiskId,
        /// The node.
        node: InstanceId,
    },
    /// As many nodes hold the disk as can.
    #[error(
        "disk {disk} cannot be attached to node {node}: {holders} nodes hold it, and 16 can at most"
    )]
    Shared {
        /// The disk.
        disk: DiskId,
        /// The node.
        node: InstanceId,
        /// How many hold it.
        holders: usize,
        /// The cloud's words.
        #[source]
        source: cloud::Error,
    },
    /// One node may write, and another one does.
    #[error(
        "disk {disk} cannot be attached to node {node} to be written: node {holder} may write to it, and \
         its access mode is for one writer"
    )]
    SecondWriter {
        /// The disk.
        disk: DiskId,
        /// The node.
        node: InstanceId,
        /// Who may write.
        holder: InstanceId,
    },
    /// It is on the node in another way.
    #[error(
        "disk {disk} is attached to node {node} {found}, not {wanted} as is asked for now (the disk's tag \
         {tag} says which nodes only read)"
    )]
    Incompatible {
        /// The disk.
        disk: DiskId,
        /// The node.
        node: InstanceId,
        /// How it is there.
        found: &'static str,
        /// How it is wanted.
        wanted: &'static str,
        /// The tag that says so.
        tag: String,
    },
}

/// By these the cloud says that the instance's type does not go with the disk.
const TYPES: [&str; 2] = [
    "InvalidOperation.InstanceTypeNotSupport",
    "IncorrectInstanceStatus.NotSupportESSD",
];

const SUBSCRIPTION: &str = "it is a subscription disk, which belongs to its instance";
const LOCAL: &str = "disks of its category belong to one instance and cannot be moved";
const EPHEMERAL: &str = "it is an elastic ephemeral disk, which stays with the first instance that it was \
                         attached to";
const SYSTEM: &str = "it is a system disk";

/// The reason in words, by the cloud's code; none when the code says something else.
fn immovable(code: &str) -> Option<&'static str> {
    match code {
        "DiskNotPortable" => Some(SUBSCRIPTION),
        "DiskCategory.OperationNotSupported"
        | "DiskId.ValueNotSupported"
        | "InvalidParameter.DeleteWithInstance"
        | "InvalidOperation.DiskCategoryUnsupported" => Some(LOCAL),
        "InvalidOperation.OtherInstanceUnsupported" => Some(EPHEMERAL),
        "DiskTypeViolation" | "InvalidDisk.DiskNotBootable" => Some(SYSTEM),
        _ => None,
    }
}

/// What a refusal says of disk and node, where that is for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The node's type does not take the disk.
    NodeType,
    /// Nothing takes it, for this reason.
    Immovable(&'static str),
}

pub(super) fn verdict(refusal: &cloud::Error) -> Option<Verdict> {
    let code = refusal.code()?;
    if code.starts_with("InvalidInstanceType.") || TYPES.contains(&code) {
        return Some(Verdict::NodeType);
    }
    immovable(code).map(Verdict::Immovable)
}

/// The category in words.
pub(super) fn named(category: Option<&Category>) -> String {
    category.map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

impl Incompatible {
    pub(in crate::disk) fn failure(&self) -> Failure {
        match self {
            // A type that would take the disk after a restart says so.
            Self::NodeType { source, .. } => of_cloud(source),
            Self::Immovable { .. } => Failure::DiskNotMovable,
            Self::System { .. } => Failure::SystemDisk,
            Self::OneNode { .. } => Failure::DiskNotShared,
            Self::Shared { .. } => Failure::TooManyHolders,
            Self::SecondWriter { .. } => Failure::SecondWriter,
            Self::Incompatible { .. } => Failure::AttachedOtherwise,
        }
    }
}
