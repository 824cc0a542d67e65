//! Creating and deleting disks.

use std::sync::Arc;

use super::create_once::Creator;
use super::journal::Journal;
use super::ownership::Owner;
use super::snapshot::Snapshotter;
use crate::base::Tasks;
use crate::cloud::Ecs;
use crate::cloud::view::Poller;
use crate::model::{Disk, DiskId};

mod capacity;
mod clone;
mod compare;
mod create;
mod create_in_zone;
mod delete;
mod new_disk;
pub mod place;

pub use new_disk::{NewDisk, Place};

#[derive(Debug)]
pub struct Provisioner {
    ecs: Arc<dyn Ecs>,
    disks: Arc<Poller<DiskId, Disk>>,
    snapshots: Arc<Snapshotter>,
    owner: Owner,
    journal: Arc<Journal>,
    creator: Creator<Disk>,
    market: place::Market,
}

impl Provisioner {
    pub(super) fn new(
        ecs: Arc<dyn Ecs>,
        disks: Arc<Poller<DiskId, Disk>>,
        snapshots: Arc<Snapshotter>,
        owner: Owner,
        journal: Arc<Journal>,
        tasks: Tasks,
    ) -> Self {
        let creator = Creator::new(Arc::clone(&ecs), owner.clone(), Arc::clone(&disks), tasks);
        Self {
            ecs,
            disks,
            snapshots,
            owner,
            journal,
            creator,
            market: place::Market::default(),
        }
    }

    /// Begins to list the disks of this cluster in the background, so that the first creation need not wait for that.
    pub fn list_owned(&self) {
        self.creator.listing.start();
    }
}
