//! The volumes that this process has published and not unpublished since.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::{DiskId, InstanceId};

#[derive(Debug, Default)]
pub(in crate::disk) struct Published(Mutex<HashMap<DiskId, Vec<InstanceId>>>);

impl Published {
    pub(in crate::disk) fn record(&self, disk: &DiskId, node: &InstanceId) {
        let mut volumes = self.lock();
        let nodes = volumes.entry(disk.clone()).or_default();
        if !nodes.contains(node) {
            nodes.push(node.clone());
        }
    }

    /// Records that the disk is being detached from the node.
    pub(in crate::disk) fn remove(&self, disk: &DiskId, node: &InstanceId) {
        let mut volumes = self.lock();
        if let Some(nodes) = volumes.get_mut(disk) {
            nodes.retain(|other| other != node);
            if nodes.is_empty() {
                volumes.remove(disk);
            }
        }
    }

    pub(in crate::disk) fn contains(&self, disk: &DiskId, node: &InstanceId) -> bool {
        self.lock().get(disk).is_some_and(|nodes| nodes.contains(node))
    }

    /// The nodes of a disk.
    pub(in crate::disk) fn nodes_of(&self, disk: &DiskId) -> Vec<InstanceId> {
        self.lock().get(disk).cloned().unwrap_or_default()
    }

    /// All nodes with a volume.
    pub(in crate::disk) fn nodes(&self) -> HashSet<InstanceId> {
        self.lock().values().flatten().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DiskId, Vec<InstanceId>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
