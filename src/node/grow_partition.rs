//! Grows the only partition of a disk to its end, while the filesystem in it is mounted.

use super::observe::{CallContext, quick};
use super::plan;
use super::tools::Tools;
use super::{Error, Result};
use crate::linux::Device;
use crate::linux::filesystem::{self, GROW_TOLERANCE};
use crate::model::Failure;

pub(super) async fn grow(tools: &Tools, call: CallContext<'_>, partition: &Device) -> Result<()> {
    let Some(disk) = parent_disk(call, partition).await? else {
        return Ok(());
    };
    for command in filesystem::grow_partition(&disk.path) {
        tools.run(call, "grow the partition", &command).await?;
    }
    match parent_disk(call, partition).await? {
        Some(disk) if plan::partition_grows(&disk) => Err(not_grown(call, partition)),
        Some(_) | None => Ok(()),
    }
}

/// Checks that the partition reaches the end of the disk.
///
/// # Errors
/// The partition table cannot address the end of the disk.
pub(super) async fn check_grown(call: CallContext<'_>, partition: &Device) -> Result<()> {
    match parent_disk(call, partition).await? {
        Some(disk) if plan::partition_has_room(&disk) => Err(not_grown(call, partition)),
        Some(_) | None => Ok(()),
    }
}

async fn parent_disk(call: CallContext<'_>, partition: &Device) -> Result<Option<Device>> {
    let Some(name) = &partition.partition_of else {
        return Ok(None);
    };
    call.wrap(call.host.device(quick(), name)).await
}

fn not_grown(call: CallContext<'_>, partition: &Device) -> Error {
    let message = format!(
        "its partition {partition} still ends more than {GROW_TOLERANCE} before the end of the disk; a DOS partition \
         table ends at 2 TiB: convert it to GPT, or copy the data to a new volume"
    );
    call.error(Failure::DeviceNotResized, message)
}
