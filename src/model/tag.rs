//! Tags of disks and snapshots. Sorted, because the cloud compares their order on a repeated create.

use std::collections::BTreeMap;

/// Tags by key.
pub type Tags = BTreeMap<String, String>;

/// The tag key that says which cluster owns a disk or snapshot; its value is the cluster id.
pub const CLUSTER: &str = "diskplugin.csi.example/cluster-id";

/// The tag key that carries the CSI name (of a volume or snapshot) a resource was created for.
pub const CSI_NAME: &str = "diskplugin.csi.example/name";

/// Longest tag value that the cloud takes, in characters.
pub const LONGEST_VALUE: usize = 128;
