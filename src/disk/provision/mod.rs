//! Creating and deleting disks.

use std::sync::Arc;

use super::attempts::AttemptHistory;
use super::fresh::Fresh;
use super::journal::Journal;
use super::ownership::Owner;
use super::snapshot::Snapshotter;
use crate::cloud::Ecs;
use crate::cloud::view::Poller;
use crate::model::{Disk, DiskId};

mod capacity;
mod clone;
mod compare;
mod create;
mod create_in_zone;
mod delete;
mod find;
mod new_disk;
pub(in crate::disk) mod place;

pub use new_disk::{NewDisk, Place};

/// Creates and deletes disks.
#[derive(Debug)]
pub struct Provisioner {
    ecs: Arc<dyn Ecs>,
    disks: Arc<Poller<DiskId, Disk>>,
    snapshots: Arc<Snapshotter>,
    owner: Owner,
    journal: Arc<Journal>,
    attempts: AttemptHistory,
    fresh: Fresh,
    market: place::Market,
    sweep: clone::Sweep,
}

impl Provisioner {
    pub(super) fn new(
        ecs: Arc<dyn Ecs>,
        disks: Arc<Poller<DiskId, Disk>>,
        snapshots: Arc<Snapshotter>,
        owner: Owner,
        journal: Arc<Journal>,
    ) -> Self {
        Self {
            ecs,
            disks,
            snapshots,
            owner,
            journal,
            attempts: AttemptHistory::default(),
            fresh: Fresh::default(),
            market: place::Market::default(),
            sweep: clone::Sweep::default(),
        }
    }
}
