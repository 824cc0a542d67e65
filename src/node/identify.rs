//! Identifies a device as the volume's without a search, for calls that release the device. The serial decides. A device
//! that does not report one is identified by the incarnation in the staging record or the mapping.

use std::sync::Arc;

use super::Result;
use super::map;
use super::observe::{CallContext, quick};
use super::plan::Identity;
use super::staged::StagedRecords;
use crate::base::error_chain;
use crate::host::{Device, DeviceIncarnation, Host, Records};

#[derive(Debug, Clone)]
pub(super) struct Identifier {
    pub(super) host: Arc<dyn Host>,
    pub(super) staged: StagedRecords,
    /// The directory of the mappings.
    pub(super) mappings: Records,
}

impl Identifier {
    /// Whether the device is the volume's. A device whose serial is pending or truncated is never another disk's by
    /// default: only a record of that disk proves it.
    pub(super) async fn identify(
        &self,
        device: &Device,
        call: CallContext<'_>,
    ) -> Result<Identity> {
        let serial = &call.volume.serial;
        let is_truncated = match &device.serial {
            Some(reported) if reported == serial => return Ok(Identity::Volume),
            Some(reported) if !reported.is_truncation_of(serial) => return Ok(Identity::Other),
            Some(_) => true,
            None => false,
        };
        match device.backing_serial() {
            Some(backing) if backing == serial.as_str() => return Ok(Identity::Volume),
            Some(_) => return Ok(Identity::Other),
            None => {}
        }
        let boot = self.host.boot_id(quick()).await.map_err(call.failed())?;
        let incarnation = DeviceIncarnation::new(&boot, device);
        if let Some(incarnation) = &incarnation {
            if self.is_recorded(incarnation, call).await {
                return Ok(Identity::Volume);
            }
            if self.is_recorded_for_another(incarnation, call).await {
                return Ok(Identity::Other);
            }
        }
        Ok(if is_truncated || device.serial_pending {
            Identity::Unknown
        } else {
            Identity::Other
        })
    }

    /// Whether the volume was staged on, or is mapped to, this incarnation.
    async fn is_recorded(&self, incarnation: &DeviceIncarnation, call: CallContext<'_>) -> bool {
        let staged = self.staged.get(call.id().as_str()).await;
        if staged.is_some_and(|staged| staged.incarnation.as_ref() == Some(incarnation)) {
            return true;
        }
        match map::get(&self.mappings, call.id()).await {
            Ok(mapping) => mapping.is_some_and(|mapping| mapping.incarnation == *incarnation),
            Err(error) => {
                let error = error_chain(&error);
                tracing::warn!(disk.id = %call.id(), error, "the mapping of the disk is unreadable and ignored");
                false
            }
        }
    }

    async fn is_recorded_for_another(
        &self,
        incarnation: &DeviceIncarnation,
        call: CallContext<'_>,
    ) -> bool {
        let is_other = |serial: &str| serial != call.volume.serial.as_str();
        let staged = self.staged.all().await;
        let mut staged = staged.iter().filter(|record| is_other(&record.serial));
        if staged.any(|record| record.incarnation.as_ref() == Some(incarnation)) {
            return true;
        }
        let mappings = map::all(&self.mappings).await.unwrap_or_default().0;
        let mut others = mappings.iter().filter(|(disk, _)| disk != call.id());
        others.any(|(_, mapping)| mapping.incarnation == *incarnation)
    }
}
