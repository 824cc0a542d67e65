//! Reports the available capacity (CSI `GetCapacity`).

use super::Provisioner;
use std::ops::RangeInclusive;

use super::candidates::select_candidates;
use crate::base::Deadline;
use crate::disk::error::{Error, cloud};
use crate::disk::{NewDisk, Result};
use crate::model::Gib;

impl Provisioner {
    /// The sizes in stock; `None` if out of stock everywhere. The cloud reports whether stock exists, not how much, so
    /// the capacity is one disk of the maximum size. The response is shared, up to a minute old, and updated by
    /// creates.
    ///
    /// If the cloud rejects the query because of the key, its permissions or the region, everything except recent
    /// stock-outs is in stock: after an error, the scheduler would report missing storage. CreateVolume then reports
    /// the cause.
    pub async fn capacity(&self, deadline: Deadline, new: &NewDisk) -> Result<Option<RangeInclusive<Gib>>> {
        let selection = match select_candidates(new) {
            // No candidate exists, regardless of the stock.
            Err(Error::OutOfStock { .. } | Error::OutOfRange { .. }) => return Ok(None),
            selection => selection?,
        };
        let mut sizes: Option<RangeInclusive<Gib>> = None;
        for candidate in &selection.candidates {
            let has = self
                .stock_view
                .is_in_stock(self.ecs.as_ref(), deadline, candidate)
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
