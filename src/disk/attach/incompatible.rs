//! Disks that are incompatible with a node, or with a use on it.

use crate::cloud;
use crate::disk::name::of_cloud;
use crate::model::{Category, DiskId, Failure, InstanceId};

/// A disk that cannot be attached to a node, or not for the requested use.
#[derive(Debug, thiserror::Error)]
pub enum Incompatible {
    /// The node's type does not support such disks.
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
        /// The refusal.
        #[source]
        source: cloud::Error,
    },
    /// The disk cannot be moved between nodes.
    #[error("disk {disk} cannot be attached to node {node}: {why}")]
    Immovable {
        /// The disk.
        disk: DiskId,
        /// The node.
        node: InstanceId,
        /// The reason, in words.
        why: &'static str,
        /// The refusal.
        #[source]
        source: cloud::Error,
    },
    /// The disk is the system disk of an instance.
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
    /// The access mode is for several nodes, and only one can hold the disk.
    #[error(
        "disk {disk} cannot be attached to node {node} with an access mode for several nodes: it was not \
         created with multi-attach, which cannot be changed"
    )]
    OneNode {
        /// The disk.
        disk: DiskId,
        /// The node.
        node: InstanceId,
    },
    /// The disk is at its limit of attachments.
    #[error(
        "disk {disk} cannot be attached to node {node}: {holders} nodes hold it, and the maximum is 16"
    )]
    Shared {
        /// The disk.
        disk: DiskId,
        /// The node.
        node: InstanceId,
        /// How many nodes hold it.
        holders: usize,
        /// The refusal.
        #[source]
        source: cloud::Error,
    },
    /// The access mode is for one writer, and another node may write.
    #[error(
        "disk {disk} cannot be attached to node {node} writable: node {holder} may write to it, and the \
         access mode is for one writer"
    )]
    SecondWriter {
        /// The disk.
        disk: DiskId,
        /// The node.
        node: InstanceId,
        /// The node that may write.
        holder: InstanceId,
    },
    /// The disk is attached to the node for another use.
    #[error(
        "disk {disk} is attached to node {node} {found}, not {wanted} as requested (the disk's tag {tag} \
         marks it read-only on that node)"
    )]
    ModeConflict {
        /// The disk.
        disk: DiskId,
        /// The node.
        node: InstanceId,
        /// The mode that it is attached with.
        found: &'static str,
        /// The requested mode.
        wanted: &'static str,
        /// The tag of the mode.
        tag: String,
    },
}

/// Codes for an instance type that is incompatible with the disk.
const TYPES: [&str; 2] = [
    "InvalidOperation.InstanceTypeNotSupport",
    "IncorrectInstanceStatus.NotSupportESSD",
];

const SUBSCRIPTION: &str = "it is a subscription disk, which belongs to its instance";
const LOCAL: &str = "disks of its category belong to one instance and cannot be moved";
const EPHEMERAL: &str = "it is an elastic ephemeral disk, which stays with the first instance that it was \
                         attached to";
const SYSTEM: &str = "it is a system disk";

/// The reason in words; none for other codes.
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

/// What a final refusal says about disk and node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The node's type does not support the disk.
    NodeType,
    /// No other node can hold the disk, for this reason.
    Immovable(&'static str),
}

pub(super) fn verdict(refusal: &cloud::Error) -> Option<Verdict> {
    let code = refusal.code()?;
    if code.starts_with("InvalidInstanceType.") || TYPES.contains(&code) {
        return Some(Verdict::NodeType);
    }
    immovable(code).map(Verdict::Immovable)
}

/// The name of the category.
pub(super) fn named(category: Option<&Category>) -> String {
    category.map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

impl Incompatible {
    pub(in crate::disk) fn failure(&self) -> Failure {
        match self {
            // A type that supports the disk after a restart has a code of its own.
            Self::NodeType { source, .. } => of_cloud(source),
            Self::Immovable { .. } => Failure::DiskNotMovable,
            Self::System { .. } => Failure::SystemDisk,
            Self::OneNode { .. } => Failure::DiskNotShared,
            Self::Shared { .. } => Failure::TooManyHolders,
            Self::SecondWriter { .. } => Failure::SecondWriter,
            Self::ModeConflict { .. } => Failure::AttachedOtherwise,
        }
    }
}
