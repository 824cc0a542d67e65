//! Statistics of a volume in use.

use super::observe::Quick;
use super::request::Stats;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::{Entry, Usage};
use crate::model::Bytes;

const VERB: &str = "taking statistics";

/// How full a volume is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeStats {
    /// Of its filesystem.
    Filesystem(Usage),
    /// Of a device only the capacity is known.
    Device(Bytes),
}

impl Node {
    /// Statistics of the volume at a path.
    ///
    /// # Errors
    /// When the volume is not at the path, or its filesystem does not answer by the deadline.
    pub async fn stats(&self, request: &Stats, deadline: Deadline) -> Result<VolumeStats> {
        let volume = &request.volume;
        let at = Quick::new(volume, VERB);
        let not_here = |reason: String| Error::NotHere {
            volume: volume.id.clone(),
            path: request.path.as_path().to_owned(),
            reason,
        };
        let Some(device) = self.present(volume, VERB).await? else {
            let reason = "no device with its serial is on this node";
            return Err(not_here(reason.to_owned()));
        };
        let mounts = self.mounts(at).await?;
        let spot = self.spot(request.path.as_path(), &mounts, at).await?;
        match &spot.mount {
            Some(_) if spot.entry == Entry::Block(device.number) => {
                Ok(VolumeStats::Device(device.size))
            }
            Some(mount) if mount.is_of(&device) => {
                let usage = self.host.usage(deadline, &spot.path).await;
                usage.map(VolumeStats::Filesystem).map_err(at.failed())
            }
            Some(mount) => Err(not_here(format!(
                "{} is mounted there",
                mount.source.display()
            ))),
            None => Err(not_here("nothing is mounted there".to_owned())),
        }
    }
}
