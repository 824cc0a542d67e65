//! Plans online filesystem expansion.

use super::common::{grow_mounted, needs_growth};
use super::{Plan, PlanError};
use crate::linux::{Device, Mount};
use crate::model::{Bytes, Failure};

/// Grows a mounted filesystem, and the partition that it is on. `mounts` are all its mounts; `filesystem_size` is
/// `None` if it is unknown.
pub(in crate::node) fn expand(
    device: &Device,
    mounts: &[Mount],
    filesystem_size: Option<Bytes>,
    partition_grows: bool,
) -> Plan {
    let grows = partition_grows || needs_growth(filesystem_size, device);
    if !grows && filesystem_size.is_some() {
        return Ok(Vec::new());
    }
    let writable = mounts.iter().find(|m| m.is_whole() && !m.is_read_only());
    let filesystem = writable.and_then(|mount| mount.kind.parse().ok());
    match (writable, filesystem) {
        (Some(mount), Some(filesystem)) => Ok(grow_mounted(filesystem, &mount.point, partition_grows).collect()),
        _ => {
            let message = format!("{device} is mounted read-only: its filesystem cannot grow");
            Err(PlanError::new(Failure::ReadOnlyUnsupported, message))
        }
    }
}
