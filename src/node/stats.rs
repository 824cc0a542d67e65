//! Usage and health issues of a volume (`NodeGetVolumeStats`).

use super::health::HealthReporter;
use super::health_issue::HealthIssue;
use super::kubelet_path::as_not_found;
use super::observe::CallContext;
use super::request::StatsRequest;
use super::{Error, Result};
use crate::base::Deadline;
use crate::host::Usage;
use crate::model::Bytes;

pub(super) const OPERATION: &str = "taking statistics";

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
    pub health_issues: Vec<HealthIssue>,
}

impl HealthReporter {
    /// The usage and the health issues of the volume at a path. Returns within seconds, even if the
    /// device no longer responds.
    ///
    /// # Errors
    /// The volume is not at the path, or the state of the host cannot be read.
    pub async fn stats(&self, request: &StatsRequest, deadline: Deadline) -> Result<VolumeStats> {
        let volume = &self
            .staged
            .volume(CallContext::new(&request.volume, OPERATION))
            .await?;
        let call = CallContext::new(volume, OPERATION);
        let device = self.finder.lookup_device(volume, OPERATION).await?;
        let mounts = self.observer.mounts(call).await?;
        let path = self
            .observer
            .resolve_path(&request.path, call)
            .await
            .map_err(as_not_found)?;
        let Some(mount) = mounts.iter().rfind(|mount| mount.point == path) else {
            return Err(Error::VolumeNotFound {
                volume: volume.id.clone(),
                path: request.path.as_path().to_owned(),
                reason: match device {
                    Some(_) => "nothing is mounted there",
                    None => "no device of this node has its serial",
                }
                .to_owned(),
            });
        };
        match self
            .check_health(volume, device.as_ref(), mount, deadline)
            .await?
        {
            Some(report) => Ok(report),
            None => Err(Error::VolumeNotFound {
                volume: volume.id.clone(),
                path: request.path.as_path().to_owned(),
                reason: format!("{} is mounted there", mount.source.display()),
            }),
        }
    }
}
