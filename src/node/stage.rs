//! Stage: formats an attached disk and mounts its filesystem, or verifies that its block device is ready.

use std::io::ErrorKind;
use std::sync::Arc;

use super::Result;
use super::block_settings;
use super::format::Formatter;
use super::format_record::FormatRecord;
use super::io_watch::IoWatch;
use super::mounted::{self, OwnedMount};
use super::observe::{CallContext, Observer, device_node_mounts, mounts_of, quick};
use super::plan::{self, StageObservation, Step};
use super::release::{self, in_use};
use super::request::{Access, StageRequest};
use super::run::run_steps;
use super::staged::StagedRecords;
use super::tool_slots::{ToolKind, ToolSlots};
use crate::base::{Clock, Deadline, InPhase, Phase};
use crate::linux::{Capability, Content, Device, DeviceLock, HolderQuery};

const OPERATION: &str = "staging";

#[derive(Debug, Clone)]
pub struct Stager {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) observer: Observer,
    pub(super) io: IoWatch,
    pub(super) staged: StagedRecords,
    pub(super) tool_slots: ToolSlots,
    pub(super) formatter: Formatter,
}

impl Stager {
    /// Stages a volume. Idempotent. The deadline bounds the wait for the device.
    pub async fn stage(&self, request: StageRequest, deadline: Deadline) -> Result<()> {
        let volume = request.volume.id.clone();
        let staged = Box::pin(self.clone().stage_locked(request, deadline));
        self.io.operations.run(&volume, OPERATION, deadline, staged).await
    }

    async fn stage_locked(self, request: StageRequest, deadline: Deadline) -> Result<()> {
        let call = CallContext::new(&*self.observer.host, &request.volume, OPERATION, deadline);
        // Invalid paths are rejected before the wait for the device.
        self.observer.resolve_path(&request.staging, call).await?;
        let found = self.observer.wait_for_device(call);
        let mut disk = found.in_phase(Phase::DeviceWait).await?;
        if request.tuning.partition {
            let partitions = self.observer.wait_for_partitions(call, disk);
            disk = partitions.in_phase(Phase::DeviceWait).await?;
        }
        let io = &self.io;
        let prepare = Box::pin(self.prepare(&request, &disk, call));
        let (device, steps, mut blank) = io.observe(call, &disk, None, prepare).await?;
        let tool = self.tool_kind(call, &device, &steps);
        let tool = io.observe(call, &disk, None, tool).await?;
        let mut slot = tool.and_then(|kind| self.tool_slots.try_acquire(kind));
        if let (Some(kind), None) = (tool, &slot) {
            // Release the device during the wait; mkfs locks and reads it again.
            blank = None;
            let acquired = self.tool_slots.acquire(call, kind);
            slot = Some(acquired.in_phase(Phase::ToolQueue).await?);
        }
        // The future of all steps is too large for the stack of the callers.
        let run = Box::pin(async {
            let settings = &request.tuning.block_settings;
            block_settings::apply(call, &disk, settings).await?;
            run_steps(&self.formatter, call, &device, &steps, blank).await
        });
        io.observe(call, &disk, slot, run).await
    }

    /// Reads the state of the host, plans the steps, and records the device as staged. Returns the disk or its only
    /// partition, the steps, and the lock under which the device was read as blank.
    async fn prepare(
        &self,
        request: &StageRequest,
        disk: &Device,
        call: CallContext<'_>,
    ) -> Result<(Device, Vec<Step>, Option<DeviceLock>)> {
        self.remove_dead_mounts(request, disk, call).await?;
        let (observed, blank) = self.observe(request, disk, call).await?;
        let steps = plan::stage(request, &observed).map_err(call.refused())?;
        observed.mounted_size?;
        // A volume that is already mounted was recorded before its mount, unless the record was lost.
        let is_mount = |step: &Step| matches!(step, Step::Mount(_));
        if steps.iter().any(is_mount)
            || matches!(request.access, Access::Block)
            || self.staged.volume(call).await? != *call.volume
        {
            let fsck = match request.access {
                Access::Mount { .. } => Some(request.tuning.fsck),
                Access::Block => None,
            };
            self.staged.put(call, disk, fsck).await?;
        }
        Ok((observed.device, steps, blank))
    }

    /// Removes mounts at the staging path whose device was removed, which an unstage would remove too.
    async fn remove_dead_mounts(&self, request: &StageRequest, disk: &Device, call: CallContext<'_>) -> Result<()> {
        loop {
            let (_, state) = self.observer.observe(&request.staging, call).await?;
            let Some(mount) = state.mount.as_ref().filter(|mount| !mount.is_of(disk)) else {
                return Ok(());
            };
            let Ok(OwnedMount::Dead(device)) = mounted::identify(&self.staged, &state, mount, call).await else {
                // The plan names what is mounted there.
                return Ok(());
            };
            release::unmount_dead(&self.io, call, device.as_deref(), &state.path).await?;
        }
    }

    /// The slot that the tools of the steps need.
    async fn tool_kind(&self, call: CallContext<'_>, device: &Device, steps: &[Step]) -> Result<Option<ToolKind>> {
        let kind = ToolKind::of(steps, true);
        if kind != Some(ToolKind::FullCheck) {
            return Ok(kind);
        }
        let superblocks = call.wrap(call.host.superblocks(quick(), device)).await?;
        let now = self.clock.now();
        let is_demanded = superblocks.ext.is_some_and(|ext| ext.demands_full_check(now));
        Ok(ToolKind::of(steps, is_demanded))
    }

    async fn observe(
        &self,
        request: &StageRequest,
        disk: &Device,
        call: CallContext<'_>,
    ) -> Result<(StageObservation, Option<DeviceLock>)> {
        let device = match request.access {
            Access::Mount { .. } if request.tuning.partition => plan::single_partition(disk).map_err(call.refused())?,
            Access::Mount { .. } | Access::Block => disk.clone(),
        };
        let (mounts, staging) = self.observer.observe(&request.staging, call).await?;
        let mut elsewhere = mounts_of(disk, &mounts, &[&staging.path]);
        // A process with access to the raw device can write at any time, so a blank read proves nothing.
        if let Access::Mount { .. } = request.access {
            elsewhere.extend(device_node_mounts(disk, &mounts, &staging.path));
        }
        let in_use = staging.mount.is_some()
            || !elsewhere.is_empty()
            || !device.partitions.is_empty()
            || !device.holders.is_empty();
        let format_record = if in_use {
            FormatRecord::None
        } else {
            self.formatter.records.get(&device, call).await?
        };
        if format_record == FormatRecord::Current {
            // A mkfs that an earlier process started may still run.
            drop(call.wrap(call.host.lock_device(call.deadline, &device)).await?);
        }
        let (content, blank) = match request.access {
            Access::Mount { .. } if !in_use => {
                let read = content(&device, call);
                let (content, blank) = read.in_phase(Phase::BlankCheck).await?;
                (Some(content), blank)
            }
            Access::Mount { .. } | Access::Block => (None, None),
        };
        let mounted_size = match (&request.access, &staging.mount) {
            (Access::Mount { .. }, Some(mount)) if mount.is_of(&device) => call.mounted_size(&device, mount).await,
            _ => Ok(None),
        };
        let capabilities = call.wrap(call.host.capabilities(quick())).await?;
        let observed = StageObservation {
            rejects_writes: call.rejects_writes(&device, &staging).await,
            ext_grows_mounted: capabilities.has(Capability::SysResource),
            partition_grows: device.partition_of.is_some() && plan::partition_grows(disk),
            device,
            staging,
            elsewhere,
            content,
            format_record,
            mounted_size,
        };
        Ok((observed, blank))
    }
}

/// Reads the content of an unused device. Returns the lock under which it was read if the device is blank and could be
/// locked immediately. Only devices that appear blank are locked: udev probes a new device for a moment and skips
/// locked ones.
async fn content(device: &Device, call: CallContext<'_>) -> Result<(Content, Option<DeviceLock>)> {
    let lock = call.wrap(call.host.lock_if_blank(call.deadline, device)).await?;
    let content = match call.host.content(call.deadline, device).await {
        // Another mount namespace still has the filesystem mounted, or a process has a file of it open.
        Err(error) if error.io_kind() == Some(ErrorKind::ResourceBusy) => {
            return Err(in_use(call, device, &HolderQuery::device(device)).await);
        }
        content => content.map_err(call.failed())?,
    };
    let lock = lock.filter(|_| content == Content::Blank);
    Ok((content, lock))
}
