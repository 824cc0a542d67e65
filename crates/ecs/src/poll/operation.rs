//! The operations whose durations are learned.

use crate::model::Category;

/// An asynchronous operation of the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// From `CreateDisk` to a disk that has left the status `Creating`.
    Create,
    /// From `AttachDisk` to `In_use`.
    Attach,
    /// From `DetachDisk` to a disk without the attachment.
    Detach,
    /// From `ResizeDisk` to the new size.
    Resize,
    /// From `ModifyDiskSpec` to the new specification.
    Modify,
    /// From `CreateSnapshot` to the point-in-time cut.
    Snapshot,
    /// From `CreateSnapshot` to a snapshot that disks can be created from.
    SnapshotAvailable,
}

/// An operation on disks of a category, whose durations are learned separately.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationKind {
    operation: Operation,
    /// None if the caller does not know the category, and for resources other than disks.
    category: Option<Category>,
}

impl From<Operation> for OperationKind {
    fn from(operation: Operation) -> Self {
        Self {
            operation,
            category: None,
        }
    }
}

impl Operation {
    pub fn for_category(self, category: &Category) -> OperationKind {
        OperationKind {
            operation: self,
            category: Some(category.clone()),
        }
    }
}

impl OperationKind {
    pub(super) fn operation(&self) -> Operation {
        self.operation
    }
}
