use std::ops::RangeInclusive;
use std::sync::Arc;

use super::Result;
use super::dependencies::Dependencies;
use super::error::{Error, cloud};
use super::evidence::Creator;
use super::snapshot::Snapshotter;
use crate::base::Deadline;
use crate::model::{Category, Disk, Gib, ZoneId};

pub mod candidates;
mod clone;
mod compare;
mod create;
mod create_in_zone;
mod delete;
mod deletion_snapshot;
mod new_disk;

pub use new_disk::{AllowedZone, NewDisk};

#[derive(Debug)]
pub struct Provisioner {
    shared: Dependencies,
    snapshots: Arc<Snapshotter>,
    creator: Creator<Disk>,
    stock_view: candidates::StockView,
}

impl Provisioner {
    pub(super) fn new(shared: &Dependencies, snapshots: Arc<Snapshotter>) -> Self {
        Self {
            creator: Creator::new(shared, Arc::clone(&shared.disks)),
            shared: shared.clone(),
            snapshots,
            stock_view: candidates::StockView::default(),
        }
    }

    /// The zones and categories that the cloud recently reported as out of stock; without a category, the whole zone.
    pub fn stockouts(&self) -> Vec<(Option<ZoneId>, Option<Category>)> {
        self.stock_view.stockouts.current()
    }

    /// Starts the listing of this cluster's disks in the background, so that the first create does not wait for it.
    pub fn list_owned(&self) {
        self.creator.listing.start();
    }

    /// The sizes in stock; `None` if out of stock everywhere. The cloud reports whether stock exists, not how much, so
    /// the capacity is one disk of the maximum size. The response is shared, up to a minute old, and updated by
    /// creates.
    ///
    /// If the cloud rejects the query because of the key, its permissions or the region, everything except recent
    /// stock-outs is in stock: after an error, the scheduler would report missing storage. CreateVolume then reports
    /// the cause.
    pub async fn capacity(&self, deadline: Deadline, new: &NewDisk) -> Result<Option<RangeInclusive<Gib>>> {
        let selection = match candidates::select_candidates(new) {
            // No candidate exists, regardless of the stock.
            Err(Error::OutOfStock { .. } | Error::OutOfRange { .. }) => return Ok(None),
            selection => selection?,
        };
        let mut sizes: Option<RangeInclusive<Gib>> = None;
        for candidate in &selection.candidates {
            let has = self
                .stock_view
                .is_in_stock(self.shared.ecs.as_ref(), deadline, candidate)
                .await;
            if !has.map_err(cloud(format!("read the stock of {candidate}")))? {
                continue;
            }
            let supported = candidate.category.sizes_at(candidate.level);
            let most = supported.map_or(candidate.size, |sizes| *sizes.end());
            sizes = Some(match sizes {
                None => candidate.size..=most,
                Some(sizes) => candidate.size.min(*sizes.start())..=most.max(*sizes.end()),
            });
        }
        Ok(sizes)
    }
}
