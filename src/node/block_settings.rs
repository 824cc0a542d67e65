//! Applies the block device settings of a volume when it is staged, and restores the earlier ones when it is unstaged.

use std::sync::Arc;

use super::device_check::DeviceCheck;
use super::observe::{CallContext, quick};
use super::staged::{OriginalSettings, StagedRecords};
use super::{Error, Result};
use crate::base::error_chain;
use crate::host::{Device, Host};
use crate::model::BlockSettings;

#[derive(Debug, Clone)]
pub(super) struct BlockSettingsApplier {
    pub(super) host: Arc<dyn Host>,
    pub(super) staged: StagedRecords,
    pub(super) device_check: DeviceCheck,
}

impl BlockSettingsApplier {
    /// Applies the settings. The earlier values are recorded first.
    ///
    /// # Errors
    /// The kernel does not have a setting or rejects its value. Then the earlier values are restored.
    pub(super) async fn apply(
        &self,
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
        let mut originals = OriginalSettings::new();
        for (name, value) in scheduler_first(settings.iter()) {
            let now = self.host.block_setting(quick(), device, name).await;
            match now.map_err(call.failed())? {
                Some(now) if now == value => {}
                Some(now) => {
                    originals.insert(name.to_owned(), now);
                    changes.push((name, value));
                }
                None => {
                    return Err(rejected(
                        name,
                        value,
                        "this kernel does not have it".to_owned(),
                    ));
                }
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        self.staged.put_settings(call, device, originals).await?;
        // The name may belong to another disk meanwhile.
        self.device_check.verify(call, device).await?;
        for (name, value) in changes {
            tracing::info!(disk.id = %call.id(), %device, "{}: set {name} to {value}", call.operation);
            if let Err(error) = self
                .host
                .set_block_setting(quick(), device, name, value)
                .await
            {
                self.restore(call, device).await;
                return Err(rejected(name, value, error_chain(&error)));
            }
        }
        Ok(())
    }

    /// Restores the recorded values. Failures are logged only: the settings do not outlive the device.
    pub(super) async fn restore(&self, call: CallContext<'_>, device: &Device) {
        let settings = self.staged.settings(call.volume, device).await;
        if settings.is_empty() || self.device_check.verify(call, device).await.is_err() {
            return;
        }
        for (name, value) in scheduler_first(settings.iter()) {
            tracing::info!(disk.id = %call.id(), %device, "{}: reset {name} to {value}", call.operation);
            if let Err(error) = self
                .host
                .set_block_setting(quick(), device, name, value)
                .await
            {
                let error = error_chain(&error);
                tracing::warn!(disk.id = %call.id(), %device, error, "cannot reset {name}");
            }
        }
    }
}

/// A change of the scheduler resets other settings, such as `nr_requests`.
fn scheduler_first<N: AsRef<str>, V>(settings: impl Iterator<Item = (N, V)>) -> Vec<(N, V)> {
    let mut settings: Vec<(N, V)> = settings.collect();
    settings.sort_by_key(|(name, _)| name.as_ref() != "queue/scheduler");
    settings
}
