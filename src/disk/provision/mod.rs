//! Creates, clones and deletes disks.

use std::sync::Arc;

use ecs::Client;

use super::dependencies::Dependencies;
use super::evidence::{Creator, Rows};
use super::journal::Journal;
use super::ownership::Owner;
use super::refusals::Refusals;
use super::snapshot::Snapshotter;
use crate::model::{Category, Disk, ZoneId};

mod attempt;
pub mod candidates;
mod capacity;
mod clone;
mod compare;
mod create;
mod create_in_zone;
mod delete;
mod new_disk;

pub(super) use create_in_zone::create_request;
pub use new_disk::{AllowedZone, NewDisk};

#[derive(Debug)]
pub struct Provisioner {
    ecs: Arc<Client>,
    disks: Arc<Rows<Disk>>,
    snapshots: Arc<Snapshotter>,
    owner: Owner,
    journal: Arc<Journal>,
    creator: Creator<Disk>,
    stock_view: candidates::StockView,
    /// Refusals of a request that do not depend on the stock.
    refusals: Refusals<String>,
}

impl Provisioner {
    pub(super) fn new(shared: &Dependencies, snapshots: Arc<Snapshotter>) -> Self {
        let shared = shared.clone();
        Self {
            creator: Creator::new(&shared, Arc::clone(&shared.disks)),
            ecs: shared.ecs,
            disks: shared.disks,
            snapshots,
            owner: shared.owner,
            journal: shared.journal,
            stock_view: candidates::StockView::default(),
            refusals: Refusals::default(),
        }
    }

    /// The zones and categories that the cloud recently reported as out of stock; without a category, the whole zone.
    #[must_use]
    pub fn stockouts(&self) -> Vec<(Option<ZoneId>, Option<Category>)> {
        self.stock_view.stockouts.current()
    }

    /// Starts the listing of this cluster's disks in the background, so that the first create does not wait for it.
    pub fn list_owned(&self) {
        self.creator.listing.start();
    }
}
