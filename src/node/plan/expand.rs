//! Plans online filesystem expansion.

use super::common::needs_growth;
use super::{DeviceStep, Plan, PlanError};
use crate::host::{Device, Mount};
use crate::model::Bytes;

/// Grows a mounted filesystem. `mounts` are all its mounts; `filesystem_size` is `None` if it is unknown.
pub(in crate::node) fn expand(
    device: &Device,
    mounts: &[Mount],
    filesystem_size: Option<Bytes>,
) -> Plan {
    if !needs_growth(filesystem_size, device) && filesystem_size.is_some() {
        return Ok(Vec::new());
    }
    let writable = mounts.iter().find(|m| m.is_whole() && !m.is_read_only());
    let filesystem = writable.and_then(|mount| mount.kind.parse().ok());
    match (writable, filesystem) {
        (Some(mount), Some(filesystem)) => Ok(vec![
            DeviceStep::GrowMounted {
                filesystem,
                mount_point: mount.point.clone(),
            }
            .into(),
        ]),
        _ => Err(PlanError::GrowReadOnly {
            device: device.to_string(),
        }),
    }
}
