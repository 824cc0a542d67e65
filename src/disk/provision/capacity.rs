//! How large a disk can be had where.

use super::Provisioner;
use std::ops::RangeInclusive;

use super::place::choose;
use crate::base::Deadline;
use crate::disk::error::{Error, cloud as of_cloud};
use crate::disk::{NewDisk, Result};
use crate::model::Gib;

impl Provisioner {
    /// The sizes in stock; none if out of stock everywhere. The cloud reports whether stock exists, not how much, which counts
    /// as one disk of the maximum size. The response is shared and up to a minute old, corrected by later creates.
    ///
    /// If the cloud rejects the query because of the key, its permissions or the region, everything except recent stock-outs
    /// counts as in stock: after an error the scheduler would assume no capacity, and the pod's event would blame missing
    /// storage. CreateVolume then reports the cause on the claim, or succeeds without that permission.
    pub async fn capacity(
        &self,
        deadline: Deadline,
        new: &NewDisk,
    ) -> Result<Option<RangeInclusive<Gib>>> {
        let choice = match choose(new) {
            // Nothing of the kind is stockouts there, now or ever.
            Err(Error::OutOfStock { .. } | Error::OutOfRange { .. }) => return Ok(None),
            choice => choice?,
        };
        let mut sizes: Option<RangeInclusive<Gib>> = None;
        for pair in &choice.pairs {
            let has = self.stock_view.has(self.ecs.as_ref(), deadline, pair).await;
            if !has.map_err(of_cloud(format!("read the stock of {pair}")))? {
                continue;
            }
            let stockouts = pair.category.sizes_at(pair.level);
            let most = stockouts.map_or(pair.size, |stockouts| *stockouts.end());
            sizes = Some(match sizes {
                None => pair.size..=most,
                Some(sizes) => pair.size.min(*sizes.start())..=most.max(*sizes.end()),
            });
        }
        Ok(sizes)
    }
}
