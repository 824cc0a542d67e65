//! Disks that are incompatible with a node, or with a use on it.

use crate::cloud::{self, Condition};
use crate::model::{DiskId, Failure, InstanceId};

/// A disk that cannot be attached to a node, or not for the requested use.
#[derive(Debug, thiserror::Error)]
pub enum Incompatible {
    #[error(
        "disk {disk} of category {category} cannot be attached to node {node} of type {instance_type}"
    )]
    NodeType {
        disk: DiskId,
        category: String,
        node: InstanceId,
        instance_type: String,
        source: cloud::Error,
    },
    #[error("disk {disk} cannot be attached to node {node}: {why}")]
    Immovable {
        disk: DiskId,
        node: InstanceId,
        why: &'static str,
        source: cloud::Error,
    },
    #[error(
        "disk {disk} cannot be attached to node {node}: it is a system disk, and only data disks are \
         volumes"
    )]
    System { disk: DiskId, node: InstanceId },
    #[error(
        "disk {disk} cannot be attached to node {node} with an access mode for several nodes: it was not \
         created with multi-attach, which cannot be changed"
    )]
    OneNode { disk: DiskId, node: InstanceId },
    #[error(
        "disk {disk} cannot be attached to node {node}: {holders} nodes hold it, and the maximum is 16"
    )]
    Shared {
        disk: DiskId,
        node: InstanceId,
        holders: usize,
        source: cloud::Error,
    },
    #[error(
        "disk {disk} cannot be attached to node {node} writable: node {holder} may write to it, and the \
         access mode is for one writer"
    )]
    SecondWriter {
        disk: DiskId,
        node: InstanceId,
        holder: InstanceId,
    },
    #[error(
        "disk {disk} is attached to node {node} {found}, not {wanted} as requested (the disk's tag {tag} \
         marks it read-only on that node)"
    )]
    ModeConflict {
        disk: DiskId,
        node: InstanceId,
        found: &'static str,
        wanted: &'static str,
        tag: String,
    },
}

/// Why no other node can hold the disk, if the refusal says so.
pub(super) fn immovable(refusal: Condition) -> Option<&'static str> {
    Some(match refusal {
        Condition::SubscriptionDisk => "it is a subscription disk, which belongs to its instance",
        Condition::LocalDisk | Condition::DeletedWithNode => {
            "disks of its category belong to one instance and cannot be moved"
        }
        Condition::NotFirstNode => {
            "it is an elastic ephemeral disk, which stays with the first instance that it was \
             attached to"
        }
        Condition::SystemDisk | Condition::NotBootable => "it is a system disk",
        _ => return None,
    })
}

impl Incompatible {
    pub(in crate::disk) fn failure(&self) -> Failure {
        match self {
            // A type that supports the disk after a restart has a code of its own.
            Self::NodeType { source, .. } => source.failure(),
            Self::Immovable { .. } => Failure::DiskNotMovable,
            Self::System { .. } => Failure::SystemDisk,
            Self::OneNode { .. } => Failure::DiskNotShared,
            Self::Shared { .. } => Failure::TooManyHolders,
            Self::SecondWriter { .. } => Failure::SecondWriter,
            Self::ModeConflict { .. } => Failure::AttachedOtherwise,
        }
    }
}
