//! Usage and health issues of a volume (`NodeGetVolumeStats`).

use super::health::Ailment;
use super::observe::CallContext;
use super::place::not_there;
use super::request::{HealthRequest, StatsRequest};
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::Usage;
use crate::model::Bytes;

pub(super) const VERB: &str = "taking statistics";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeUsage {
    Filesystem(Usage),
    /// Only the capacity is known: a block volume, or a filesystem that does not respond.
    Device(Bytes),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeStats {
    /// `None` if the device was removed.
    pub usage: Option<VolumeUsage>,
    /// Empty if no issue is detected.
    pub health_issues: Vec<Ailment>,
}

impl Node {
    /// The usage and the health issues of the volume at a path. Returns within seconds, even if the device no longer
    /// responds.
    ///
    /// # Errors
    /// The volume is not at the path, or the state of the host cannot be read.
    pub async fn stats(&self, request: &StatsRequest, deadline: Deadline) -> Result<VolumeStats> {
        let volume = &request.volume;
        let call = CallContext::new(volume, VERB);
        let health = HealthRequest {
            volume: volume.clone(),
            paths: vec![request.path.clone()],
        };
        let device = self.present(volume, VERB).await?;
        let mounts = self.mounts(call).await?;
        let path = self.place(&request.path, call).await.map_err(not_there)?;
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
