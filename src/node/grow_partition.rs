//! Grows the only partition of a disk to its end, while the filesystem in it is mounted.

use std::sync::Arc;

use super::observe::{CallContext, quick};
use super::plan;
use super::tools::Tools;
use super::{Error, Result};
use crate::host::filesystem::GROW_TOLERANCE;
use crate::host::{Device, Host, partition_table};

#[derive(Debug, Clone)]
pub(super) struct PartitionGrower {
    pub(super) host: Arc<dyn Host>,
    pub(super) tools: Tools,
}

impl PartitionGrower {
    /// Grows the partition in the table and in the kernel.
    ///
    /// # Errors
    /// A tool fails, or the partition did not grow.
    pub(super) async fn grow(&self, call: CallContext<'_>, partition: &Device) -> Result<()> {
        let Some(disk) = self.disk(call, partition).await? else {
            return Ok(());
        };
        for command in partition_table::grow(&disk.path) {
            self.tools.run(call, "grow the partition", &command).await?;
        }
        match self.disk(call, partition).await? {
            Some(disk) if plan::partition_grows(&disk) => Err(not_grown(call, partition)),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks that the partition reaches the end of the disk.
    ///
    /// # Errors
    /// The partition table cannot address the end of the disk.
    pub(super) async fn check_grown(
        &self,
        call: CallContext<'_>,
        partition: &Device,
    ) -> Result<()> {
        match self.disk(call, partition).await? {
            Some(disk) if plan::partition_has_room(&disk) => Err(not_grown(call, partition)),
            Some(_) | None => Ok(()),
        }
    }

    async fn disk(&self, call: CallContext<'_>, partition: &Device) -> Result<Option<Device>> {
        let Some(name) = &partition.partition_of else {
            return Ok(None);
        };
        let disk = self.host.device(quick(), name).await;
        disk.map_err(call.failed())
    }
}

fn not_grown(call: CallContext<'_>, partition: &Device) -> Error {
    Error::PartitionNotGrown {
        volume: call.id().clone(),
        partition: partition.to_string(),
        tolerance: GROW_TOLERANCE,
    }
}
