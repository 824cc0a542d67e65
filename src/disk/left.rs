//! Which disks have just left which nodes: a read of before that still shows them attached there, and
//! would make a new attachment look complete before it is.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::missing::LAG;
use crate::base::Deadline;
use crate::model::{DiskId, InstanceId};

/// The disks that left a node within the lag of reads.
#[derive(Debug, Default)]
pub(super) struct Left(Mutex<HashMap<DiskId, (InstanceId, Deadline)>>);

impl Left {
    /// The disk leaves the node now.
    pub(super) fn note(&self, disk: &DiskId, node: &InstanceId) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|_, (_, until)| !until.is_over());
        left.insert(disk.clone(), (node.clone(), Deadline::after(LAG)));
    }

    /// Whether reads may still be of before the disk left the node.
    pub(super) fn lately(&self, disk: &DiskId, node: &InstanceId) -> bool {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.get(disk)
            .is_some_and(|(from, until)| from == node && !until.is_over())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_disk_has_left_lately_only_that_node_and_only_for_a_while() {
        let left = Left::default();
        let disk: DiskId = "d-1".parse().unwrap();
        let (one, two): (InstanceId, InstanceId) = ("i-1".parse().unwrap(), "i-2".parse().unwrap());
        left.note(&disk, &one);
        assert!(left.lately(&disk, &one) && !left.lately(&disk, &two));
        tokio::time::advance(LAG + Duration::from_millis(1)).await;
        assert!(!left.lately(&disk, &one));
        left.note(&"d-2".parse().unwrap(), &one);
        assert_eq!(left.0.lock().unwrap().len(), 1);
    }
}
