//! The volumes staged on this node, with their usage, health and I/O statistics: for metrics.

use std::path::Path;

use super::Result;
use super::health::HealthReporter;
use super::observe::CallContext;
use super::request::Volume;
use super::stats::VolumeStats;
use crate::base::{Deadline, error_chain};
use crate::host::Device;
use crate::model::DiskId;

const OPERATION: &str = "measuring";

/// The size of a sector in the kernel's statistics, regardless of the device (Documentation/block/stat.rst).
const SECTOR: u64 = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedVolume {
    pub id: DiskId,
    /// `None` if the volume is not mounted, or could not be measured.
    pub stats: Option<VolumeStats>,
    /// `None` if the device was removed.
    pub io: Option<IoStatistics>,
}

/// I/O of a device since it was attached (Documentation/block/stat.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoStatistics {
    pub reads: u64,
    pub read_bytes: u64,
    pub read_milliseconds: u64,
    pub writes: u64,
    pub written_bytes: u64,
    pub write_milliseconds: u64,
    pub in_flight: u64,
    /// Time during which I/O was in flight.
    pub busy_milliseconds: u64,
}

impl IoStatistics {
    /// Parses `/sys/block/NAME/stat`.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> = text
            .split_whitespace()
            .map_while(|field| field.parse().ok())
            .collect();
        let field = |index: usize| fields.get(index).copied();
        Some(Self {
            reads: field(0)?,
            read_bytes: field(2)?.saturating_mul(SECTOR),
            read_milliseconds: field(3)?,
            writes: field(4)?,
            written_bytes: field(6)?.saturating_mul(SECTOR),
            write_milliseconds: field(7)?,
            in_flight: field(8)?,
            busy_milliseconds: field(9)?,
        })
    }
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
        let volume = self.staged.volume(&default, OPERATION).await;
        let volume = volume.unwrap_or(default);
        let call = CallContext::new(&volume, OPERATION);
        let device = self.finder.lookup_device(call).await;
        let device = device.ok().flatten();
        let io = match &device {
            Some(device) => self.io_statistics(device, deadline).await,
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
            id: volume.id,
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
        let volume = call.volume;
        let mounts = self.observer.mounts(call).await?;
        let Some(device) = device else {
            // A mount whose device was removed, if there is one.
            for mount in &mounts {
                let removed = self.check_health(volume, None, mount, deadline).await?;
                if removed.is_some() {
                    return Ok(removed);
                }
            }
            return Ok(None);
        };
        let is_of = |mount: &&crate::host::Mount| mount.is_of(device) || mount.is_node_of(device);
        match mounts.iter().rfind(is_of) {
            Some(mount) => {
                self.check_health(volume, Some(device), mount, deadline)
                    .await
            }
            None => Ok(None),
        }
    }

    async fn io_statistics(&self, device: &Device, deadline: Deadline) -> Option<IoStatistics> {
        let path = Path::new("/sys/block")
            .join(device.whole_name())
            .join("stat");
        let text = self.host.text(deadline, &path).await.ok()??;
        IoStatistics::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_kernels_documentation() {
        let text = "     101        2     4096       50      200        3     8192      70        1      90      120 \
                    0 0 0 0 5 6\n";
        let expected = IoStatistics {
            reads: 101,
            read_bytes: 4096 * 512,
            read_milliseconds: 50,
            writes: 200,
            written_bytes: 8192 * 512,
            write_milliseconds: 70,
            in_flight: 1,
            busy_milliseconds: 90,
        };
        assert_eq!(IoStatistics::parse(text), Some(expected));
        assert_eq!(IoStatistics::parse("1 2 3"), None);
    }
}
