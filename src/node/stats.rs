//! Statistics of a volume in use.

use super::health::Ailment;
use super::observe::Quick;
use super::place::not_there;
use super::request::{Health, Stats};
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::Usage;
use crate::model::Bytes;

pub(super) const VERB: &str = "taking statistics";

/// How full a volume is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeStats {
    /// Of its filesystem.
    Filesystem(Usage),
    /// Of a device only the capacity is known, and of a filesystem that does not answer.
    Device(Bytes),
}

/// How a volume is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How full; none where its device is gone.
    pub usage: Option<VolumeStats>,
    /// What is wrong; nothing when nothing shows.
    pub ailments: Vec<Ailment>,
}

impl Node {
    /// How full the volume at a path is, and what is wrong with it. It answers within seconds, also of
    /// a volume whose device answers no more.
    ///
    /// # Errors
    /// When the volume is not at the path, or the host cannot be looked at.
    pub async fn stats(&self, request: &Stats, deadline: Deadline) -> Result<Report> {
        let volume = &request.volume;
        let at = Quick::new(volume, VERB);
        let health = Health {
            volume: volume.clone(),
            places: vec![request.path.clone()],
        };
        let device = self.present(volume, VERB).await?;
        let mounts = self.mounts(at).await?;
        let path = self.place(&request.path, at).await.map_err(not_there)?;
        let Some(mount) = mounts.iter().rfind(|mount| mount.point == path) else {
            return Err(Error::NotHere {
                volume: volume.id.clone(),
                path: request.path.as_path().to_owned(),
                reason: match device {
                    Some(_) => "nothing is mounted there",
                    None => "no device with its serial is on this node",
                }
                .to_owned(),
            });
        };
        match self
            .examine(&health, device.as_ref(), mount, deadline)
            .await?
        {
            Some(report) => Ok(report),
            None => Err(Error::NotHere {
                volume: volume.id.clone(),
                path: request.path.as_path().to_owned(),
                reason: format!("{} is mounted there", mount.source.display()),
            }),
        }
    }
}
