//! The request for a snapshot group.

use std::collections::BTreeSet;

use crate::model::{DiskId, Tags};

/// A group that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGroup {
    /// The CSI name; the same name is the same group.
    pub name: String,
    /// The disks to snapshot.
    pub sources: BTreeSet<DiskId>,
    /// Resource group to bill it to; none is the account's default.
    pub resource_group: Option<String>,
    /// Tags of the group and of its snapshots, beside the driver's own.
    pub tags: Tags,
}
