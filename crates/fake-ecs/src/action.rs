//! The ECS API actions that the fake cloud implements.

use std::str::FromStr;

macro_rules! actions {
    ($($action:ident)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Action { $($action,)* }

        impl Action {
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$action => stringify!($action),)* }
            }
        }

        impl FromStr for Action {
            type Err = ();

            /// Action names are case-sensitive.
            fn from_str(name: &str) -> Result<Self, ()> {
                match name {
                    $(stringify!($action) => Ok(Self::$action),)*
                    _ => Err(()),
                }
            }
        }
    };
}

actions! {
    CreateDisk DeleteDisk AttachDisk DetachDisk DescribeDisks ResizeDisk ModifyDiskSpec ModifyDiskAttribute
    DescribeTasks DescribeDisksFullStatus
    CreateSnapshot DeleteSnapshot DescribeSnapshots
    CreateSnapshotGroup DeleteSnapshotGroup DescribeSnapshotGroups
    TagResources UntagResources ListTagResources
    DescribeInstances DescribeInstanceTypes DescribeAvailableResource DescribeRegions
}

impl Action {
    /// Whether the action is a read, which returns an empty list instead of an error if RAM denies it.
    pub(crate) fn is_list(self) -> bool {
        self.as_str().starts_with("Describe") || self == Self::ListTagResources
    }
}
