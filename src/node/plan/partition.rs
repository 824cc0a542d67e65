//! Selects the part of a disk that has the filesystem: the whole disk, or its only partition.

use super::PlanError;
use crate::linux::filesystem::GROW_TOLERANCE;
use crate::linux::{Content, Device, Partition};
use crate::model::Failure;

pub(in crate::node) fn single_partition(disk: &Device) -> Result<Device, PlanError> {
    match disk.partitions.as_slice() {
        [partition] if partition.index == 1 && disk.holders.is_empty() => Ok(disk.as_partition(partition)),
        [] => Err(not_single(disk, "no partition")),
        partitions => {
            let names = partitions.iter().map(|partition| &partition.name);
            let names: Vec<&str> = names.chain(&disk.holders).map(String::as_str).collect();
            Err(not_single(disk, &names.join(", ")))
        }
    }
}

/// Partitions are never formatted.
pub(super) fn check_formatted(device: &Device, content: Option<&Content>) -> Result<(), PlanError> {
    match content {
        Some(Content::Filesystem { .. }) => Ok(()),
        Some(content) if device.partition_of.is_some() => Err(not_single(device, &content.to_string())),
        Some(_) | None => Ok(()),
    }
}

/// Rejects a disk with partitions as a volume that is the whole disk.
pub(super) fn check_not_partitioned(device: &Device) -> Result<(), PlanError> {
    if device.partitions.is_empty() {
        return Ok(());
    }
    let partitions = device.partitions.iter();
    let partitions: Vec<String> = partitions
        .map(|partition| format!("{} ({})", partition.name, partition.size))
        .collect();
    let message = format!(
        "{device} has the partitions {}, but the volume is the whole disk; to mount the only partition of a disk that \
         the driver did not format, recreate the PersistentVolume with the volume attribute `partition: \"1\"`",
        partitions.join(", ")
    );
    Err(PlanError::new(Failure::ForeignData, message))
}

/// Whether the only partition of the disk ends well before the disk.
pub(in crate::node) fn partition_has_room(disk: &Device) -> bool {
    matches!(disk.partitions.as_slice(), [partition] if partition.room(disk) > GROW_TOLERANCE)
}

pub(in crate::node) fn partition_grows(disk: &Device) -> bool {
    let at_limit = disk.partitions.first().is_some_and(Partition::is_at_dos_limit);
    partition_has_room(disk) && !at_limit
}

fn not_single(device: &Device, found: &str) -> PlanError {
    let message = format!(
        "{device} has {found}, but the volume attribute `partition: \"1\"` requires a single partition with a \
         filesystem"
    );
    PlanError::new(Failure::ForeignData, message)
}
