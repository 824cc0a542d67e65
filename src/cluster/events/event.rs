//! The content of an event: reason, message, and claim or node.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType};

use crate::cluster::nodes::{Nodes, OUT_OF_SERVICE};
use crate::model::{DiskId, InstanceId};

/// Maximum length of a note in bytes (events.k8s.io/v1).
const LONGEST: usize = 1024;

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

    fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("PersistentVolumeClaim".to_owned()),
            namespace: Some(self.namespace.clone()),
            name: Some(self.name.clone()),
            uid: self.uid.clone(),
            ..ObjectReference::default()
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// No zone and category are available for the claim.
    OutOfStock {
        /// The attempts, with the reason of each failure.
        reasons: String,
    },
    /// A disk to attach is attached to another node.
    InUseElsewhere {
        disk: DiskId,
        node: InstanceId,
        holder: InstanceId,
    },
    /// A node has reached its attach limit.
    AttachLimitExceeded { node: InstanceId, reasons: String },
    /// A node was marked as out of service.
    Fenced { node: InstanceId, reason: String },
    /// The mark was removed.
    Unfenced { node: InstanceId },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterEvent {
    pub cause: Cause,
    /// The claim of the disk; none for a disk without a claim.
    pub claim: Option<Claim>,
}

impl Cause {
    pub fn reason(&self) -> &'static str {
        match self {
            Self::OutOfStock { .. } => "DiskOutOfStock",
            Self::InUseElsewhere { .. } => "DiskInUseElsewhere",
            Self::AttachLimitExceeded { .. } => "NodeAttachLimitExceeded",
            Self::Fenced { .. } => "NodeOutOfService",
            Self::Unfenced { .. } => "NodeInService",
        }
    }

    fn message(&self, nodes: &Nodes) -> String {
        match self {
            Self::OutOfStock { reasons } | Self::AttachLimitExceeded { reasons, .. } => reasons.clone(),
            Self::InUseElsewhere { disk, node, holder } => {
                let (target, current) = (called(nodes, node), called(nodes, holder));
                format!(
                    "disk {disk} cannot be attached to node {target}: node {current} holds it, and a disk is never taken \
                     from a node. Delete the pod that uses it there, or fence the node if it is dead"
                )
            }
            Self::Fenced { reason, .. } => format!(
                "{reason}: its pods are deleted, and its volumes detached (taint {OUT_OF_SERVICE}). The taint is removed \
                 when the instance runs again and the node is ready"
            ),
            Self::Unfenced { .. } => format!(
                "the instance runs again, the node is ready, and none of its earlier pods remains: the taint {OUT_OF_SERVICE} \
                 is removed"
            ),
        }
    }
}

impl ClusterEvent {
    /// The event in Kubernetes, and its object; none if that is unknown.
    pub(super) fn in_kubernetes(&self, nodes: &Nodes) -> Option<(Event, ObjectReference)> {
        let machine = |id| nodes.name_of(id).map(|name| machine(&name));
        let claim = self.claim.as_ref().map(Claim::reference);
        let (action, regarding, secondary) = match &self.cause {
            Cause::OutOfStock { .. } => ("CreateVolume", claim, None),
            Cause::InUseElsewhere { node, holder, .. } => {
                ("AttachVolume", claim.or_else(|| machine(node)), machine(holder))
            }
            // The claim's pod has the event FailedAttachVolume.
            Cause::AttachLimitExceeded { node, .. } => ("AttachVolume", machine(node), claim),
            Cause::Fenced { node, .. } | Cause::Unfenced { node } => ("FenceNode", machine(node), None),
        };
        let event = Event {
            type_: match self.cause {
                Cause::Unfenced { .. } => EventType::Normal,
                _ => EventType::Warning,
            },
            reason: self.cause.reason().to_owned(),
            note: Some(cut(self.cause.message(nodes))),
            action: action.to_owned(),
            secondary,
        };
        Some((event, regarding?))
    }
}

/// The node by name and instance ID.
fn called(nodes: &Nodes, id: &InstanceId) -> String {
    match nodes.name_of(id) {
        Some(name) => format!("{name} ({id})"),
        None => id.to_string(),
    }
}

/// A Node. Its UID is its name, as in kubelet's events: `kubectl describe node` searches for both.
pub(super) fn machine(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(name.to_owned()),
        uid: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}

/// No longer than a note may be, and cut between two characters.
fn cut(mut note: String) -> String {
    const MORE: &str = " …";
    if note.len() > LONGEST {
        let end = (0..=LONGEST - MORE.len()).rfind(|&end| note.is_char_boundary(end));
        note.truncate(end.unwrap_or(0));
        note.push_str(MORE);
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_truncated_between_characters_and_marked() {
        assert_eq!(cut("short".to_owned()), "short");
        for long in ["é".repeat(600), format!("x{}", "é".repeat(600)), "x".repeat(1025)] {
            let cut = cut(long.clone());
            assert!(cut.len() <= LONGEST && cut.len() > LONGEST - 5, "{}", cut.len());
            assert!(cut.ends_with(" …") && long.starts_with(cut.trim_end_matches(" …")));
        }
    }
}
