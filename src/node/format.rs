//! Formats a device: lock, blank check, record, mkfs, flush, removal of the record.

use super::device_check;
use super::format_record::{FormatRecord, FormatRecords};
use super::observe::{CallContext, quick};
use super::tools::Tools;
use super::{Error, Result};
use crate::base::{Deadline, error_chain};
use crate::linux::filesystem;
use crate::linux::{Content, Device, DeviceLock, FlushOutcome};
use crate::model::{Failure, Filesystem, Tuning};

#[derive(Debug, Clone)]
pub(super) struct Formatter {
    pub(super) tools: Tools,
    pub(super) records: FormatRecords,
}

impl Formatter {
    /// Formats a device under the lock under which it was read as blank, or locks and reads it now. The lock excludes a
    /// mkfs that an earlier process of the node started, and lasts as long as this mkfs.
    pub(super) async fn format(
        &self,
        call: CallContext<'_>,
        device: &Device,
        filesystem: Filesystem,
        tuning: &Tuning,
        blank: Option<DeviceLock>,
    ) -> Result<()> {
        let supported = self.mkfs_features(call, filesystem).await?;
        let arguments = tuning.mkfs_arguments(filesystem, &supported);
        let invalid = |source| call.error(Failure::BadRequest, "volume_context").with_source(source);
        let arguments = arguments.map_err(invalid)?;
        let lock = match blank {
            Some(lock) => lock,
            None => {
                let lock = call.wrap(call.host.lock_device(quick(), device)).await?;
                // The device may have changed during the wait.
                device_check::verify(call, device).await?;
                verify_content(call, device, "blank", |content| *content == Content::Blank).await?;
                lock
            }
        };
        self.records.put(device, filesystem, call).await?;
        let command = filesystem::mkfs(filesystem, &arguments, &device.path).with_lock(&lock);
        self.tools.run(call, "create the filesystem", &command).await?;
        if call.wrap(call.host.flush(Deadline::never(), device)).await? == FlushOutcome::Removed {
            return Err(call.device_changed(device, "it was removed while it was formatted"));
        }
        self.records.remove(call).await
    }

    async fn mkfs_features(&self, call: CallContext<'_>, filesystem: Filesystem) -> Result<String> {
        let Some(command) = filesystem::list_mkfs_features(filesystem) else {
            return Ok(String::new());
        };
        // mkfs.xfs prints its usage with exit code 1, because no device is given.
        let output = self.tools.output(call, "list the features of mkfs", &command).await?;
        Ok(output.stdout + &output.stderr)
    }

    /// Wipes a disk on which a mkfs of this driver was interrupted. The record remains, so that an
    /// interrupted wipe is repeated.
    pub(super) async fn wipe(&self, call: CallContext<'_>, device: &Device) -> Result<()> {
        let device_lock = call.wrap(call.host.lock_device(quick(), device)).await?;
        verify_content(call, device, "incompletely formatted", is_incomplete).await?;
        if self.records.get(device, call).await? != FormatRecord::Current {
            let reason = "the record of the interrupted mkfs no longer exists";
            return Err(call.device_changed(device, reason));
        }
        tracing::warn!(
            disk.id = %call.id(),
            device = %device,
            "mkfs was interrupted on this disk, which was blank before; wiping it",
        );
        let wiped = call.host.wipe(Deadline::never(), device).await;
        drop(device_lock);
        wiped.map_err(call.failed())
    }

    /// Wipes a disk on which a mkfs of this driver was interrupted, before the disk is released: on another node,
    /// nothing proves that its content can be discarded. A disk that cannot be read or written is released as it is.
    ///
    /// # Errors
    /// The mkfs still runs at the deadline, or the content is unclear.
    pub(super) async fn discard_incomplete(&self, call: CallContext<'_>, device: &Device) -> Result<()> {
        if self.records.get(device, call).await? != FormatRecord::Current {
            return Ok(());
        }
        drop(call.wrap(call.host.lock_device(call.deadline, device)).await?);
        let wiped = match call.host.content(quick(), device).await {
            Ok(content) if is_incomplete(&content) => self.wipe(call, device).await,
            Ok(_) => Ok(()),
            Err(error) => Err(call.failed()(error)),
        };
        match wiped {
            Err(Error::Host { source, .. }) if source.is_io_failure() => {
                let error = error_chain(&source);
                tracing::warn!(disk.id = %call.id(), error, "an incomplete filesystem remains on the disk");
                Ok(())
            }
            wiped => {
                wiped?;
                self.records.remove(call).await
            }
        }
    }
}

/// Verifies the content immediately before it is overwritten: the plan's observation may be old.
async fn verify_content(
    call: CallContext<'_>,
    device: &Device,
    was: &str,
    is: impl Fn(&Content) -> bool + Send,
) -> Result<()> {
    let content = call.wrap(call.host.content(quick(), device)).await?;
    if is(&content) {
        return Ok(());
    }
    let reason = format!("it was {was} and now holds {content}");
    Err(call.device_changed(device, reason))
}

/// Whether an interrupted mkfs can have left this content.
pub(super) fn is_incomplete(content: &Content) -> bool {
    match content {
        Content::IncompleteFormat { .. } | Content::Unknown { .. } => true,
        Content::Blank | Content::Filesystem { .. } | Content::Unsupported { .. } => false,
    }
}
