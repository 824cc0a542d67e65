//! Applies the block device settings of a volume when it is staged.

use super::Result;
use super::device_check;
use super::observe::{CallContext, quick};
use crate::base::error_chain;
use crate::linux::{Device, HostError};
use crate::model::{BlockSettings, Failure};

/// Applies the settings. They last until the disk is detached, which discards them with the device.
pub(super) async fn apply(call: CallContext<'_>, device: &Device, settings: &BlockSettings) -> Result<()> {
    let rejected = |name: &str, value: &str, reason: &str| {
        let message = format!("{device}: cannot set {name}={value} (sysConfig): {reason}");
        call.error(Failure::BlockSettingRejected, message)
    };
    let mut changes = Vec::new();
    let mut settings: Vec<_> = settings.iter().collect();
    // A change of the scheduler resets other settings, such as `nr_requests`.
    settings.sort_by_key(|(name, _)| *name != "queue/scheduler");
    for (name, value) in settings {
        match call.wrap(call.host.block_setting(quick(), device, name)).await? {
            Some(now) if now == value => {}
            Some(_) => changes.push((name, value)),
            None => return Err(rejected(name, value, "this kernel does not have it")),
        }
    }
    if changes.is_empty() {
        return Ok(());
    }
    // The name may belong to another disk meanwhile.
    device_check::verify(call, device).await?;
    for (name, value) in changes {
        tracing::info!(disk.id = %call.id(), %device, "{}: set {name} to {value}", call.operation);
        let set = call.host.set_block_setting(quick(), device, name, value);
        set.await.map_err(|error| match error {
            // The write may still take effect.
            HostError::TimedOut { .. } | HostError::StillRunning { .. } => call.failed()(error),
            error => rejected(name, value, &error_chain(&error)),
        })?;
    }
    Ok(())
}
