//! Grows the only partition of a disk to its end, while the filesystem in it is mounted.

use super::observe::{CallContext, quick};
use super::plan;
use super::tools::Tools;
use super::{Error, Result};
use crate::linux::filesystem::GROW_TOLERANCE;
use crate::linux::{Device, Host, partition_table};

/// Grows the partition in the table and in the kernel.
///
/// # Errors
/// A tool fails, or the partition did not grow.
pub(super) async fn grow(tools: &Tools, call: CallContext<'_>, partition: &Device) -> Result<()> {
    let Some(disk) = parent_disk(&*tools.host, call, partition).await? else {
        return Ok(());
    };
    for command in partition_table::grow(&disk.path) {
        tools.run(call, "grow the partition", &command).await?;
    }
    match parent_disk(&*tools.host, call, partition).await? {
        Some(disk) if plan::partition_grows(&disk) => Err(not_grown(call, partition)),
        Some(_) | None => Ok(()),
    }
}

/// Checks that the partition reaches the end of the disk.
///
/// # Errors
/// The partition table cannot address the end of the disk.
pub(super) async fn check_grown(host: &dyn Host, call: CallContext<'_>, partition: &Device) -> Result<()> {
    match parent_disk(host, call, partition).await? {
        Some(disk) if plan::partition_has_room(&disk) => Err(not_grown(call, partition)),
        Some(_) | None => Ok(()),
    }
}

async fn parent_disk(host: &dyn Host, call: CallContext<'_>, partition: &Device) -> Result<Option<Device>> {
    let Some(name) = &partition.partition_of else {
        return Ok(None);
    };
    call.wrap(host.device(quick(), name)).await
}

fn not_grown(call: CallContext<'_>, partition: &Device) -> Error {
    Error::PartitionNotGrown {
        volume: call.id().clone(),
        partition: partition.to_string(),
        tolerance: GROW_TOLERANCE,
    }
}
