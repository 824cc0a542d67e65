//! The ECS API actions that the fake cloud implements.

use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    CreateDisk,
    DeleteDisk,
    AttachDisk,
    DetachDisk,
    DescribeDisks,
    ResizeDisk,
    ModifyDiskSpec,
    ModifyDiskAttribute,
    DescribeTasks,
    DescribeDisksFullStatus,
    CreateSnapshot,
    DeleteSnapshot,
    DescribeSnapshots,
    CreateSnapshotGroup,
    DeleteSnapshotGroup,
    DescribeSnapshotGroups,
    TagResources,
    UntagResources,
    ListTagResources,
    DescribeInstances,
    DescribeInstanceTypes,
    DescribeAvailableResource,
    DescribeRegions,
}

impl Action {
    pub(crate) const ALL: [Self; 23] = [
        Self::CreateDisk,
        Self::DeleteDisk,
        Self::AttachDisk,
        Self::DetachDisk,
        Self::DescribeDisks,
        Self::ResizeDisk,
        Self::ModifyDiskSpec,
        Self::ModifyDiskAttribute,
        Self::DescribeTasks,
        Self::DescribeDisksFullStatus,
        Self::CreateSnapshot,
        Self::DeleteSnapshot,
        Self::DescribeSnapshots,
        Self::CreateSnapshotGroup,
        Self::DeleteSnapshotGroup,
        Self::DescribeSnapshotGroups,
        Self::TagResources,
        Self::UntagResources,
        Self::ListTagResources,
        Self::DescribeInstances,
        Self::DescribeInstanceTypes,
        Self::DescribeAvailableResource,
        Self::DescribeRegions,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::CreateDisk => "CreateDisk",
            Self::DeleteDisk => "DeleteDisk",
            Self::AttachDisk => "AttachDisk",
            Self::DetachDisk => "DetachDisk",
            Self::DescribeDisks => "DescribeDisks",
            Self::ResizeDisk => "ResizeDisk",
            Self::ModifyDiskSpec => "ModifyDiskSpec",
            Self::ModifyDiskAttribute => "ModifyDiskAttribute",
            Self::DescribeTasks => "DescribeTasks",
            Self::DescribeDisksFullStatus => "DescribeDisksFullStatus",
            Self::CreateSnapshot => "CreateSnapshot",
            Self::DeleteSnapshot => "DeleteSnapshot",
            Self::DescribeSnapshots => "DescribeSnapshots",
            Self::CreateSnapshotGroup => "CreateSnapshotGroup",
            Self::DeleteSnapshotGroup => "DeleteSnapshotGroup",
            Self::DescribeSnapshotGroups => "DescribeSnapshotGroups",
            Self::TagResources => "TagResources",
            Self::UntagResources => "UntagResources",
            Self::ListTagResources => "ListTagResources",
            Self::DescribeInstances => "DescribeInstances",
            Self::DescribeInstanceTypes => "DescribeInstanceTypes",
            Self::DescribeAvailableResource => "DescribeAvailableResource",
            Self::DescribeRegions => "DescribeRegions",
        }
    }

    /// Whether the action is a read, which returns an empty list instead of an error if RAM denies it.
    pub(crate) fn is_list(self) -> bool {
        self.as_str().starts_with("Describe") || self == Self::ListTagResources
    }
}

impl FromStr for Action {
    type Err = ();

    /// Action names are case-sensitive.
    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|action| action.as_str() == name).ok_or(())
    }
}
