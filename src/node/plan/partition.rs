//! Selects the part of a disk that has the filesystem: the whole disk, or its only partition.

use super::PlanError;
use crate::linux::filesystem::GROW_TOLERANCE;
use crate::linux::{Content, Device, Partition};

/// The only partition of the disk as a device.
///
/// # Errors
/// The disk has no partition, several ones, or holders.
pub(in crate::node) fn single_partition(disk: &Device) -> Result<Device, PlanError> {
    match disk.partitions.as_slice() {
        [partition] if partition.index == 1 && disk.holders.is_empty() => Ok(disk.as_partition(partition)),
        [] => Err(not_single(disk, "no partition".to_owned())),
        partitions => {
            let names = partitions.iter().map(|partition| &partition.name);
            let names: Vec<&str> = names.chain(&disk.holders).map(String::as_str).collect();
            Err(not_single(disk, names.join(", ")))
        }
    }
}

/// Partitions are never formatted.
pub(super) fn check_formatted(device: &Device, content: Option<&Content>) -> Result<(), PlanError> {
    match content {
        Some(Content::Filesystem { .. }) => Ok(()),
        Some(content) if device.partition_of.is_some() => Err(not_single(device, content.to_string())),
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
    Err(PlanError::Partitioned {
        device: device.to_string(),
        partitions: partitions.join(", "),
    })
}

/// Whether the only partition of the disk ends well before the disk.
pub(in crate::node) fn partition_has_room(disk: &Device) -> bool {
    matches!(disk.partitions.as_slice(), [partition] if partition.room(disk) > GROW_TOLERANCE)
}

/// Whether the only partition of the disk can grow.
pub(in crate::node) fn partition_grows(disk: &Device) -> bool {
    let at_limit = disk.partitions.first().is_some_and(Partition::is_at_dos_limit);
    partition_has_room(disk) && !at_limit
}

fn not_single(device: &Device, found: String) -> PlanError {
    PlanError::NotSinglePartition {
        device: device.to_string(),
        found,
    }
}
