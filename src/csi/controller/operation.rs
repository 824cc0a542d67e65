//! Mutual exclusion of operations. Other conflicts are left to the cloud and the layers below.

use crate::base::LockMode::{self as Mode, Exclusive, Shared};
use crate::disk::{NodeAccess, PublishRequest};
use crate::model::{DiskId, InstanceId};

#[derive(Debug)]
pub(super) struct LockedOperation {
    pub(super) subject: String,
    /// The keys that the operation locks.
    ///
    /// A volume with several writers is published to and unpublished from several nodes in parallel. Neither waits
    /// for a resize or a modification, which may last minutes. Both are excluded by deleting the volume and by
    /// detaching it from all nodes.
    pub(super) locks: Vec<(String, Mode)>,
}

impl LockedOperation {
    /// An operation that excludes only others of the same subject.
    pub(super) fn on(subject: String) -> Self {
        let locks = vec![(subject.clone(), Exclusive)];
        Self { subject, locks }
    }

    /// The deletion of a volume, or its detachment from all nodes.
    pub(super) fn removal(disk: &DiskId) -> Self {
        let locks = vec![(attachments(disk), Exclusive)];
        let subject = format!("volume {disk}");
        Self { subject, locks }
    }

    pub(super) fn publish(wanted: &PublishRequest) -> Self {
        let mut operation = Self::attachment(&wanted.disk, &wanted.node);
        operation.locks.extend(publication_locks(wanted));
        operation
    }

    pub(super) fn unpublish(disk: &DiskId, node: &InstanceId) -> Self {
        let mut operation = Self::attachment(disk, node);
        // The node may write until the volume is detached.
        operation.locks.push((writers(disk), Shared));
        operation
    }

    fn attachment(disk: &DiskId, node: &InstanceId) -> Self {
        let locks = vec![(attachments(disk), Shared), (format!("{disk} on {node}"), Exclusive)];
        let subject = format!("volume {disk} on node {node}");
        Self { subject, locks }
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
        // Publications are read-only.
        NodeAccess::MultiNodeReaders => vec![(users, Shared)],
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

    fn excludes(one: &LockedOperation, other: &LockedOperation) -> bool {
        let locks = KeyedLocks::default();
        let held = locks.try_lock_all(one.locks.clone());
        assert!(held.is_some());
        let excluded = locks.try_lock_all(other.locks.clone()).is_none();
        drop(held);
        let held = locks.try_lock_all(other.locks.clone());
        assert!(held.is_some());
        assert_eq!(locks.try_lock_all(one.locks.clone()).is_none(), excluded);
        excluded
    }

    #[test]
    fn a_repeated_call_is_excluded_while_the_first_is_pending() {
        let (disk, node) = (disk(), "i-1".parse().unwrap());
        for access in [
            NodeAccess::SingleNode,
            NodeAccess::MultiNodeSingleWriter,
            NodeAccess::MultiNode,
        ] {
            for read_only in [false, true] {
                let wanted = publish("i-1", access, read_only);
                let operation = LockedOperation::publish(&wanted);
                assert!(excludes(&operation, &operation));
                assert!(excludes(&operation, &LockedOperation::unpublish(&disk, &node)));
            }
        }
        for operation in [
            LockedOperation::on("volume \"one\"".to_owned()),
            LockedOperation::removal(&disk),
            LockedOperation::unpublish(&disk, &node),
        ] {
            assert!(excludes(&operation, &operation), "{operation:?}");
        }
    }

    #[test]
    fn deletion_and_detachment_from_all_nodes_exclude_every_attachment() {
        let (disk, node) = (disk(), "i-1".parse().unwrap());
        let wanted = publish("i-1", NodeAccess::MultiNode, true);
        let removal = LockedOperation::removal(&disk);
        for attachment in [
            LockedOperation::publish(&wanted),
            LockedOperation::unpublish(&disk, &node),
            LockedOperation::removal(&disk),
        ] {
            assert!(excludes(&removal, &attachment), "{attachment:?}");
        }
    }

    #[test]
    fn resizing_and_modification_exclude_no_other_operation() {
        let (disk, node) = (disk(), "i-1".parse().unwrap());
        let wanted = publish("i-1", NodeAccess::SingleNode, false);
        let [expand, modify, create] = [
            "the size of volume d-1",
            "the parameters of volume d-1",
            "snapshot \"one\"",
        ]
        .map(|subject| LockedOperation::on(subject.to_owned()));
        for long in [&expand, &modify] {
            for other in [
                &LockedOperation::publish(&wanted),
                &LockedOperation::unpublish(&disk, &node),
                &LockedOperation::removal(&disk),
                &create,
            ] {
                assert!(!excludes(long, other), "{long:?}, {other:?}");
            }
        }
        assert!(!excludes(&modify, &expand));
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
            let (first, second) = (LockedOperation::publish(&first), LockedOperation::publish(&second));
            assert_eq!(excludes(&first, &second), excluded, "{first:?}, {second:?}");
        }
        let (disk, from) = (disk(), "i-1".parse().unwrap());
        let unpublish = LockedOperation::unpublish(&disk, &from);
        for (wanted, excluded) in [
            (many("i-2", false), false),
            (one_writer("i-2", true), false),
            (one_writer("i-2", false), true),
            (one("i-2"), true),
        ] {
            assert_eq!(excludes(&LockedOperation::publish(&wanted), &unpublish), excluded);
        }
    }
}
