//! Elastic ephemeral disks, which are attached and detached with `DeleteWithInstance` only.
//!
//! The parameter must not be sent for any other disk: it would be deleted with the instance. So it is
//! never taken from a request. This process remembers the ephemeral disks that it created; for others
//! the cloud refuses a call without the parameter, and their description confirms the category.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::model::{Disk, DiskId};

/// The elastic ephemeral disks that this process has seen.
#[derive(Debug, Default)]
pub(in crate::disk) struct EphemeralDisks(Mutex<HashSet<DiskId>>);

impl EphemeralDisks {
    pub(in crate::disk) fn note(&self, disk: &Disk) {
        if disk.category.is_ephemeral() {
            let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            ids.insert(disk.id.clone());
        }
    }

    pub(in crate::disk) fn contains(&self, disk: &DiskId) -> bool {
        let ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.contains(disk)
    }

    pub(in crate::disk) fn forget(&self, disk: &DiskId) {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.remove(disk);
    }
}
