//! Instances of this cluster. Each has a system disk, which must be visible.

use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::base::lock;
use crate::model::{Disk, DiskKind, InstanceId};

/// Any of them is sufficient.
const CAPACITY: usize = 100;

#[derive(Debug, Default)]
pub(in crate::disk) struct Nodes(Mutex<BTreeSet<InstanceId>>);

impl Nodes {
    pub(in crate::disk) fn record(&self, node: &InstanceId) {
        let mut nodes = lock(&self.0);
        if nodes.len() >= CAPACITY && !nodes.contains(node) {
            nodes.pop_first();
        }
        nodes.insert(node.clone());
    }

    pub(in crate::disk) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    pub(in crate::disk) fn has_system_disk(&self, row: &Disk) -> bool {
        let nodes = lock(&self.0);
        row.kind == DiskKind::System && row.attachments.iter().any(|node| nodes.contains(node))
    }
}
