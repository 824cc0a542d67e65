//! The volumes staged on this node, with their usage, health and I/O statistics: for metrics.

use super::Result;
use super::health::HealthReporter;
use super::health_issue::VolumeStats;
use super::observe::CallContext;
use super::request::Volume;
use crate::base::{Deadline, error_chain};
use crate::linux::{Device, IoStatistics, Mount};
use crate::model::DiskId;

const OPERATION: &str = "measuring";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedVolume {
    pub id: DiskId,
    /// `None` if the volume is not mounted, or could not be measured.
    pub stats: Option<VolumeStats>,
    /// `None` if the device was removed.
    pub io: Option<IoStatistics>,
}

impl HealthReporter {
    /// All volumes staged on this node, by ID. Volumes that do not respond are reported as such within seconds.
    pub async fn staged_volumes(&self, deadline: Deadline) -> Vec<StagedVolume> {
        let volumes = self.staged.volumes().await;
        let measured = volumes.into_iter().map(|id| self.measure(id, deadline));
        crate::base::join_all(measured).await
    }

    async fn measure(&self, id: DiskId, deadline: Deadline) -> StagedVolume {
        let default = Volume::new(id, None);
        let call = CallContext::new(&*self.observer.host, &default, OPERATION);
        let volume = &self.staged.volume(call).await.unwrap_or_else(|_| default.clone());
        let call = CallContext { volume, ..call };
        let device = self.observer.lookup_device(call).await.ok().flatten();
        let io = match &device {
            Some(device) => self.observer.host.io_statistics(deadline, device).await.ok().flatten(),
            None => None,
        };
        let stats = match self.mounted_stats(call, device.as_ref(), deadline).await {
            Ok(stats) => stats,
            Err(error) => {
                let error = error_chain(&error);
                tracing::debug!(disk.id = %volume.id, error, "cannot measure the volume");
                None
            }
        };
        StagedVolume {
            id: volume.id.clone(),
            stats,
            io,
        }
    }

    async fn mounted_stats(
        &self,
        call: CallContext<'_>,
        device: Option<&Device>,
        deadline: Deadline,
    ) -> Result<Option<VolumeStats>> {
        let mounts = call.mounts().await?;
        let Some(device) = device else {
            // A mount of a removed device.
            for mount in &mounts {
                let removed = self.check_health(call, None, mount, deadline).await?;
                if removed.is_some() {
                    return Ok(removed);
                }
            }
            return Ok(None);
        };
        let is_of = |mount: &&Mount| mount.is_of(device) || mount.is_node_of(device);
        match mounts.iter().rfind(is_of) {
            Some(mount) => self.check_health(call, Some(device), mount, deadline).await,
            None => Ok(None),
        }
    }
}
