//! Identifies a device as the volume's without a search, for calls that release the device. The serial decides. A device
//! that does not report one is identified by the incarnation in the staging records.

use std::sync::Arc;

use super::Result;
use super::observe::{CallContext, quick};
use super::plan::Identity;
use super::staged::StagedRecords;
use crate::host::{Device, DeviceIncarnation, Host};
use crate::model::Serial;

#[derive(Debug, Clone)]
pub(super) struct Identifier {
    pub(super) host: Arc<dyn Host>,
    pub(super) staged: StagedRecords,
}

impl Identifier {
    /// Whether the device is the volume's. A device whose serial is pending is never another disk's by default: only a
    /// record of that disk proves it.
    pub(super) async fn identify(
        &self,
        device: &Device,
        call: CallContext<'_>,
    ) -> Result<Identity> {
        let reported = device.serial.as_ref().map(Serial::as_str);
        if let Some(serial) = reported.or(device.backing_serial()) {
            return Ok(match serial == call.volume.serial.as_str() {
                true => Identity::Volume,
                false => Identity::Other,
            });
        }
        Ok(match self.recorded(device, call).await? {
            Some(identity) => identity,
            None if device.serial_pending => Identity::Unknown,
            None => Identity::Other,
        })
    }

    /// Whether this incarnation of the device is recorded for the volume or for another one; `None` without a record.
    pub(super) async fn recorded(
        &self,
        device: &Device,
        call: CallContext<'_>,
    ) -> Result<Option<Identity>> {
        let boot = self.host.boot_id(quick()).await.map_err(call.failed())?;
        let Some(incarnation) = DeviceIncarnation::new(&boot, device) else {
            return Ok(None);
        };
        let mut records = self.staged.all().await;
        records.retain(|record| record.incarnation.as_ref() == Some(&incarnation));
        let is_own = records
            .iter()
            .any(|record| record.serial == call.volume.serial.as_str());
        Ok(match (is_own, records.is_empty()) {
            (true, _) => Some(Identity::Volume),
            (false, false) => Some(Identity::Other),
            (false, true) => None,
        })
    }
}
