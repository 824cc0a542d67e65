//! How large a disk can be had where.

use super::Provisioner;
use std::ops::RangeInclusive;

use super::place::choose;
use crate::base::Deadline;
use crate::disk::error::{Error, cloud as of_cloud};
use crate::disk::{NewDisk, Result};
use crate::model::Gib;

impl Provisioner {
    /// The sizes of what is asked for that are in stock; none when it is sold out everywhere. The cloud tells that
    /// there is stock, not how much: it is taken for one disk of the largest size. The answer of the cloud is shared
    /// and up to a minute old; what creating disks has found out since counts as well.
    ///
    /// Where the cloud refuses the look itself, by the key, its rights or the region, all is taken to be in stock but what creations were refused: an
    /// error leaves the scheduler without a capacity, which it takes for none, and the pod is told that there is no storage. So
    /// it goes on to the creation, which says on the claim what is wrong, or does well without that right.
    pub async fn capacity(
        &self,
        deadline: Deadline,
        new: &NewDisk,
    ) -> Result<Option<RangeInclusive<Gib>>> {
        let choice = match choose(new) {
            // Nothing of the kind is sold there, now or ever.
            Err(Error::OutOfStock { .. } | Error::OutOfRange { .. }) => return Ok(None),
            choice => choice?,
        };
        let mut sizes: Option<RangeInclusive<Gib>> = None;
        for pair in &choice.pairs {
            let has = self.market.has(self.ecs.as_ref(), deadline, pair).await;
            if !has.map_err(of_cloud(format!("look at the stock of {pair}")))? {
                continue;
            }
            let sold = pair.category.sizes_at(pair.level);
            let most = sold.map_or(pair.size, |sold| *sold.end());
            sizes = Some(match sizes {
                None => pair.size..=most,
                Some(sizes) => pair.size.min(*sizes.start())..=most.max(*sizes.end()),
            });
        }
        Ok(sizes)
    }
}
