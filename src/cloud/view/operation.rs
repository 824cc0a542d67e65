//! The operations whose durations are learned.

/// An asynchronous operation of the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// From `CreateDisk` to a disk that is no longer `Creating`.
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

impl Operation {
    /// The operation on disks of this category, which has durations of its own.
    #[must_use]
    pub fn of(self, category: &impl ToString) -> OperationKind {
        OperationKind {
            operation: self,
            category: category.to_string(),
        }
    }
}

/// What durations are learned by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationKind {
    pub(super) operation: Operation,
    /// Category of the disk; empty where the caller does not know it.
    pub(super) category: String,
}

impl From<Operation> for OperationKind {
    fn from(operation: Operation) -> Self {
        Self {
            operation,
            category: String::new(),
        }
    }
}
