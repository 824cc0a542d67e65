//! The content of an event: reason, message, and claim or node.

use crate::model::{DiskId, InstanceId};

pub mod reason {
    /// No zone and category are available.
    pub const OUT_OF_STOCK: &str = "DiskOutOfStock";
    /// The disk is attached to another node.
    pub const IN_USE_ELSEWHERE: &str = "DiskInUseElsewhere";
    /// The node has reached its attach limit.
    pub const ATTACH_LIMIT_EXCEEDED: &str = "NodeAttachLimitExceeded";
}

/// The claim that a volume is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    pub namespace: String,
    pub name: String,
    /// Required for `kubectl describe` to find the event; none if unknown.
    pub uid: Option<String>,
}

impl Claim {
    /// The claim of a volume name: external-provisioner derives the name from the claim's UID.
    pub fn of_volume(namespace: &str, name: &str, volume: &str) -> Self {
        let tail = volume.len().checked_sub(36);
        let tail = tail.and_then(|start| volume.get(start..));
        let uid = tail.filter(|tail| uuid::Uuid::try_parse(tail).is_ok());
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid.map(str::to_owned),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterEvent {
    /// No zone and category are available for a claim.
    OutOfStock {
        claim: Claim,
        /// The attempts, with the reason of each failure.
        reasons: String,
    },
    /// A disk to attach is attached to another node.
    InUseElsewhere {
        disk: DiskId,
        node: InstanceId,
        holder: InstanceId,
        /// The claim of the disk; none for a disk without a claim.
        claim: Option<Claim>,
    },
    /// A node has reached its attach limit.
    AttachLimitExceeded {
        /// The disk that cannot be attached.
        disk: DiskId,
        node: InstanceId,
        /// The claim of the disk; none for a disk without a claim.
        claim: Option<Claim>,
        reasons: String,
    },
}

impl ClusterEvent {
    pub fn reason(&self) -> &'static str {
        match self {
            Self::OutOfStock { .. } => reason::OUT_OF_STOCK,
            Self::InUseElsewhere { .. } => reason::IN_USE_ELSEWHERE,
            Self::AttachLimitExceeded { .. } => reason::ATTACH_LIMIT_EXCEEDED,
        }
    }
}
