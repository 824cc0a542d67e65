//! Applies the block device settings of a volume when it is staged.

use super::device_check;
use super::observe::{CallContext, quick};
use super::{Error, Result};
use crate::base::error_chain;
use crate::linux::{Device, Host, HostError};
use crate::model::BlockSettings;

/// Applies the settings. They last until the disk is detached, which discards them with the device.
///
/// # Errors
/// The kernel does not have a setting or rejects its value.
pub(super) async fn apply(
    host: &dyn Host,
    call: CallContext<'_>,
    device: &Device,
    settings: &BlockSettings,
) -> Result<()> {
    let rejected = |name: &str, value: &str, reason: String| Error::BlockSettingRejected {
        volume: call.id().clone(),
        device: device.to_string(),
        setting: format!("{name}={value}"),
        reason,
    };
    let mut changes = Vec::new();
    for (name, value) in scheduler_first(settings.iter()) {
        match call.wrap(host.block_setting(quick(), device, name)).await? {
            Some(now) if now == value => {}
            Some(_) => changes.push((name, value)),
            None => {
                let reason = "this kernel does not have it".to_owned();
                return Err(rejected(name, value, reason));
            }
        }
    }
    if changes.is_empty() {
        return Ok(());
    }
    // The name may belong to another disk meanwhile.
    device_check::verify(host, call, device).await?;
    for (name, value) in changes {
        tracing::info!(disk.id = %call.id(), %device, "{}: set {name} to {value}", call.operation);
        let set = host.set_block_setting(quick(), device, name, value);
        set.await.map_err(|error| match error {
            // The write may still take effect.
            HostError::TimedOut { .. } | HostError::StillRunning { .. } => call.failed()(error),
            error => rejected(name, value, error_chain(&error)),
        })?;
    }
    Ok(())
}

/// A change of the scheduler resets other settings, such as `nr_requests`.
fn scheduler_first<N: AsRef<str>, V>(settings: impl Iterator<Item = (N, V)>) -> Vec<(N, V)> {
    let mut settings: Vec<(N, V)> = settings.collect();
    settings.sort_by_key(|(name, _)| name.as_ref() != "queue/scheduler");
    settings
}
