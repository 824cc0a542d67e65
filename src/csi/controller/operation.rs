//! Mutual exclusion of operations. Other conflicts are left to the cloud and the layers below.

use std::fmt;

use crate::base::LockMode::{self as Mode, Exclusive, Shared};
use crate::disk::{NodeAccess, PublishRequest};
use crate::model::{DiskId, InstanceId, SnapshotGroupId, SnapshotId};

/// A call that changes a resource.
#[derive(Debug)]
pub(crate) enum LockedOperation<'a> {
    CreateVolume(&'a str),
    DeleteVolume(&'a DiskId),
    Publish(&'a PublishRequest),
    Unpublish(&'a DiskId, &'a InstanceId),
    UnpublishAll(&'a DiskId),
    Expand(&'a DiskId),
    Modify(&'a DiskId),
    CreateSnapshot(&'a str),
    DeleteSnapshot(&'a SnapshotId),
    CreateGroupSnapshot(&'a str),
    DeleteGroupSnapshot(&'a SnapshotGroupId),
}

impl LockedOperation<'_> {
    /// The keys that the operation locks.
    ///
    /// A volume with several writers is published to and unpublished from several nodes in parallel. Neither waits
    /// for a resize or a modification, which may last minutes. Both are excluded by deleting the volume and by
    /// detaching it from all nodes.
    pub(super) fn locks(&self) -> Vec<(String, Mode)> {
        let node = |disk: &DiskId, node: &InstanceId| {
            vec![(attachments(disk), Shared), (format!("{disk} on {node}"), Exclusive)]
        };
        match self {
            Self::DeleteVolume(disk) | Self::UnpublishAll(disk) => {
                vec![(attachments(disk), Exclusive)]
            }
            Self::Unpublish(disk, from) => {
                let mut locks = node(disk, from);
                // The node may write until the volume is detached.
                locks.push((writers(disk), Shared));
                locks
            }
            Self::Publish(wanted) => {
                let mut locks = node(&wanted.disk, &wanted.node);
                locks.extend(publication_locks(wanted));
                locks
            }
            Self::Expand(_)
            | Self::Modify(_)
            | Self::CreateVolume(_)
            | Self::CreateSnapshot(_)
            | Self::DeleteSnapshot(_)
            | Self::CreateGroupSnapshot(_)
            | Self::DeleteGroupSnapshot(_) => vec![(self.to_string(), Exclusive)],
        }
    }
}

fn attachments(disk: &DiskId) -> String {
    format!("attachments of {disk}")
}

fn writers(disk: &DiskId) -> String {
    format!("writers of {disk}")
}

/// Locks that exclude conflicting publications: while the attacher checks for other users of the volume and attaches
/// it, no other publication may start and no node may still be detaching.
fn publication_locks(wanted: &PublishRequest) -> Vec<(String, Mode)> {
    let users = format!("users of {}", wanted.disk);
    let writers = writers(&wanted.disk);
    match wanted.access {
        NodeAccess::SingleNode => vec![(users, Exclusive), (writers, Exclusive)],
        NodeAccess::MultiNodeSingleWriter | NodeAccess::MultiNode if wanted.read_only => {
            vec![(users, Shared)]
        }
        NodeAccess::MultiNodeSingleWriter => vec![(users, Shared), (writers, Exclusive)],
        NodeAccess::MultiNode => vec![(users, Shared), (writers, Shared)],
    }
}

impl fmt::Display for LockedOperation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateVolume(name) => write!(f, "volume {name:?}"),
            Self::DeleteVolume(disk) | Self::UnpublishAll(disk) => write!(f, "volume {disk}"),
            Self::Publish(wanted) => write!(f, "volume {} on node {}", wanted.disk, wanted.node),
            Self::Unpublish(disk, node) => write!(f, "volume {disk} on node {node}"),
            Self::Expand(disk) => write!(f, "the size of volume {disk}"),
            Self::Modify(disk) => write!(f, "the parameters of volume {disk}"),
            Self::CreateSnapshot(name) => write!(f, "snapshot {name:?}"),
            Self::DeleteSnapshot(snapshot) => write!(f, "snapshot {snapshot}"),
            Self::CreateGroupSnapshot(name) => write!(f, "group snapshot {name:?}"),
            Self::DeleteGroupSnapshot(group) => write!(f, "group snapshot {group}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::KeyedLocks;

    fn disk() -> DiskId {
        "d-1".parse().unwrap()
    }

    fn publish(node: &str, access: NodeAccess, read_only: bool) -> PublishRequest {
        PublishRequest {
            disk: disk(),
            node: node.parse().unwrap(),
            read_only,
            access,
            multi_attach: access != NodeAccess::SingleNode,
        }
    }

    fn excludes(one: &LockedOperation<'_>, other: &LockedOperation<'_>) -> bool {
        let locks = KeyedLocks::default();
        let held = locks.try_lock_all(one.locks());
        assert!(held.is_some());
        let excluded = locks.try_lock_all(other.locks()).is_none();
        drop(held);
        let held = locks.try_lock_all(other.locks());
        assert!(held.is_some());
        assert_eq!(locks.try_lock_all(one.locks()).is_none(), excluded);
        excluded
    }

    #[test]
    fn a_repeated_call_is_excluded_while_the_first_is_pending() {
        let (disk, node) = (disk(), "i-1".parse().unwrap());
        let (snapshot, group) = ("s-1".parse().unwrap(), "ssg-1".parse().unwrap());
        for access in [
            NodeAccess::SingleNode,
            NodeAccess::MultiNodeSingleWriter,
            NodeAccess::MultiNode,
        ] {
            for read_only in [false, true] {
                let wanted = publish("i-1", access, read_only);
                let operation = LockedOperation::Publish(&wanted);
                assert!(excludes(&operation, &operation));
                assert!(excludes(&operation, &LockedOperation::Unpublish(&disk, &node)));
            }
        }
        for operation in [
            LockedOperation::CreateVolume("one"),
            LockedOperation::DeleteVolume(&disk),
            LockedOperation::Unpublish(&disk, &node),
            LockedOperation::UnpublishAll(&disk),
            LockedOperation::Expand(&disk),
            LockedOperation::Modify(&disk),
            LockedOperation::CreateSnapshot("one"),
            LockedOperation::DeleteSnapshot(&snapshot),
            LockedOperation::CreateGroupSnapshot("one"),
            LockedOperation::DeleteGroupSnapshot(&group),
        ] {
            assert!(excludes(&operation, &operation), "{operation}");
        }
    }

    #[test]
    fn deletion_and_detachment_from_all_nodes_exclude_every_attachment() {
        let (disk, node) = (disk(), "i-1".parse().unwrap());
        let wanted = publish("i-1", NodeAccess::MultiNode, true);
        for exclusive in [
            LockedOperation::DeleteVolume(&disk),
            LockedOperation::UnpublishAll(&disk),
        ] {
            for attachment in [
                LockedOperation::Publish(&wanted),
                LockedOperation::Unpublish(&disk, &node),
                LockedOperation::DeleteVolume(&disk),
                LockedOperation::UnpublishAll(&disk),
            ] {
                assert!(excludes(&exclusive, &attachment), "{exclusive}, {attachment}");
            }
        }
    }

    #[test]
    fn resizing_and_modification_exclude_no_other_operation() {
        let (disk, node) = (disk(), "i-1".parse().unwrap());
        let wanted = publish("i-1", NodeAccess::SingleNode, false);
        for long in [LockedOperation::Modify(&disk), LockedOperation::Expand(&disk)] {
            for other in [
                LockedOperation::Publish(&wanted),
                LockedOperation::Unpublish(&disk, &node),
                LockedOperation::UnpublishAll(&disk),
                LockedOperation::DeleteVolume(&disk),
                LockedOperation::CreateSnapshot("one"),
            ] {
                assert!(!excludes(&long, &other), "{long}, {other}");
            }
        }
        assert!(!excludes(
            &LockedOperation::Modify(&disk),
            &LockedOperation::Expand(&disk)
        ));
    }

    #[test]
    fn publications_to_two_nodes_exclude_each_other_unless_shared() {
        let many = |node, read_only| publish(node, NodeAccess::MultiNode, read_only);
        let one_writer = |node, read_only| publish(node, NodeAccess::MultiNodeSingleWriter, read_only);
        let one = |node| publish(node, NodeAccess::SingleNode, false);
        for (first, second, excluded) in [
            (many("i-1", false), many("i-2", false), false),
            (many("i-1", false), many("i-2", true), false),
            (one_writer("i-1", false), one_writer("i-2", false), true),
            (one_writer("i-1", false), many("i-2", false), true),
            (one_writer("i-1", false), one_writer("i-2", true), false),
            (one_writer("i-1", true), one_writer("i-2", true), false),
            (one("i-1"), one("i-2"), true),
            (one("i-1"), many("i-2", true), true),
        ] {
            let (first, second) = (LockedOperation::Publish(&first), LockedOperation::Publish(&second));
            assert_eq!(excludes(&first, &second), excluded, "{first}, {second}");
        }
        let (disk, from) = (disk(), "i-1".parse().unwrap());
        let unpublish = LockedOperation::Unpublish(&disk, &from);
        for (wanted, excluded) in [
            (many("i-2", false), false),
            (one_writer("i-2", true), false),
            (one_writer("i-2", false), true),
            (one("i-2"), true),
        ] {
            assert_eq!(excludes(&LockedOperation::Publish(&wanted), &unpublish), excluded);
        }
    }
}
