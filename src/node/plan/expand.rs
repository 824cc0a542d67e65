//! Growing while mounted.

use super::common::is_small;
use super::{Plan, Refusal, Step};
use crate::host::{Device, Mount};
use crate::model::Bytes;

/// Growing a mounted filesystem; `mounts` are all mounts of the device's filesystem.
pub(in crate::node) fn expand(device: &Device, mounts: &[Mount], stated: Option<Bytes>) -> Plan {
    if !is_small(stated, device) && stated.is_some() {
        return Ok(Vec::new());
    }
    let writable = mounts.iter().find(|m| m.is_whole() && !m.is_read_only());
    let filesystem = writable.and_then(|mount| mount.kind.parse().ok());
    match (writable, filesystem) {
        (Some(mount), Some(filesystem)) => Ok(vec![Step::GrowMounted {
            filesystem,
            at: mount.point.clone(),
        }]),
        _ => Err(Refusal::GrowReadOnly {
            device: device.to_string(),
        }),
    }
}
