//! Stage: formats an attached disk and mounts its filesystem, or verifies that its block device is ready.

use std::io::ErrorKind;
use std::sync::Arc;

use super::Result;
use super::block_settings;
use super::find_device::DeviceFinder;
use super::format_record::{FormatRecord, FormatRecords};
use super::in_use::in_use;
use super::mounted::{MountIdentifier, OwnedMount};
use super::observe::{CallContext, Observer, device_node_mounts, mounts_of, quick};
use super::path_state::PathState;
use super::plan::{self, DeviceStep, StageObservation, Step};
use super::release::Unmounter;
use super::request::{Access, StageRequest};
use super::run::StepRunner;
use super::staged::StagedRecords;
use super::tool_slots::{ToolKind, ToolSlots};
use super::volume_operations::VolumeOperations;
use crate::base::{Clock, Deadline, InPhase, Phase};
use crate::linux::{Capability, Content, Device, DeviceLock, HolderQuery, Host};
use crate::model::Bytes;

const OPERATION: &str = "staging";

#[derive(Debug, Clone)]
pub struct Stager {
    pub(super) host: Arc<dyn Host>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) operations: VolumeOperations,
    pub(super) observer: Observer,
    pub(super) mounts: MountIdentifier,
    pub(super) unmounter: Unmounter,
    pub(super) finder: DeviceFinder,
    pub(super) staged: StagedRecords,
    pub(super) format_records: FormatRecords,
    pub(super) tool_slots: ToolSlots,
    pub(super) runner: StepRunner,
}

/// What is left to do.
#[derive(Debug)]
struct Prepared {
    /// The disk, or its only partition.
    device: Device,
    steps: Vec<Step>,
    /// The slot that the tools of the steps need.
    tool: Option<ToolKind>,
    /// The lock under which the device was read as blank.
    blank: Option<DeviceLock>,
}

impl Stager {
    /// Stages a volume. Idempotent. The deadline bounds the wait for the device.
    ///
    /// # Errors
    /// The device does not appear, is ambiguous or unsuitable, or a step fails.
    pub async fn stage(&self, request: StageRequest, deadline: Deadline) -> Result<()> {
        let volume = request.volume.clone();
        let staged = Box::pin(self.clone().stage_locked(request, deadline));
        let call = CallContext::new(&volume, OPERATION);
        self.operations.run(call, deadline, staged).await
    }

    async fn stage_locked(self, request: StageRequest, deadline: Deadline) -> Result<()> {
        let call = CallContext::new(&request.volume, OPERATION);
        // Invalid paths are rejected before the wait for the device.
        self.observer.resolve_path(&request.staging, call).await?;
        let found = self.finder.wait_for_device(call.volume, deadline);
        let mut disk = found.in_phase(Phase::DeviceWait).await?;
        if request.tuning.partition {
            let partitions = self.finder.wait_for_partitions(call.volume, disk, deadline);
            disk = partitions.in_phase(Phase::DeviceWait).await?;
        }
        let io = &self.unmounter.io;
        let prepare = Box::pin(self.prepare(&request, &disk, call, deadline));
        let Prepared {
            device,
            steps,
            tool,
            mut blank,
        } = io.observe(call, &disk, None, prepare).await?;
        let slot = match tool {
            None => None,
            Some(kind) => match self.tool_slots.try_acquire(kind) {
                Some(slot) => Some(slot),
                None => {
                    // Release the device during the wait; mkfs locks and reads it again.
                    blank = None;
                    let slot = self.tool_slots.acquire(call.id(), kind, deadline);
                    Some(slot.in_phase(Phase::ToolQueue).await?)
                }
            },
        };
        // The future of all steps is too large for the stack of the callers.
        let run = Box::pin(async {
            let settings = &request.tuning.block_settings;
            block_settings::apply(&*self.host, call, &disk, settings).await?;
            self.runner.run(call, &device, &steps, blank).await
        });
        io.observe(call, &disk, slot, run).await
    }

    /// Reads the state of the host, plans the steps, and records the device as staged.
    async fn prepare(
        &self,
        request: &StageRequest,
        disk: &Device,
        call: CallContext<'_>,
        deadline: Deadline,
    ) -> Result<Prepared> {
        let removed = self.remove_dead_mounts(request, disk, call, deadline);
        removed.await?;
        let (observed, blank) = self.observe(request, disk, call, deadline).await?;
        let steps = plan::stage(request, &observed).map_err(call.refused())?;
        // A volume that is already mounted was recorded before its mount, unless the record was lost.
        let is_mount = |step: &Step| matches!(step, Step::Device(DeviceStep::Mount { .. }));
        if steps.iter().any(is_mount)
            || matches!(request.access, Access::Block)
            || self.staged.volume(call.volume, OPERATION).await? != *call.volume
        {
            let fsck = match request.access {
                Access::Mount { .. } => Some(request.tuning.fsck),
                Access::Block => None,
            };
            self.staged.put(call, disk, fsck).await?;
        }
        Ok(Prepared {
            tool: self.tool_kind(call, &observed.device, &steps).await?,
            device: observed.device,
            steps,
            blank,
        })
    }

    /// Removes mounts at the staging path whose device was removed, which an unstage would remove too.
    async fn remove_dead_mounts(
        &self,
        request: &StageRequest,
        disk: &Device,
        call: CallContext<'_>,
        deadline: Deadline,
    ) -> Result<()> {
        loop {
            let (_, state) = self.observer.observe(&request.staging, call).await?;
            let Some(mount) = state.mount.as_ref().filter(|mount| !mount.is_of(disk)) else {
                return Ok(());
            };
            let owned = self.mounts.identify(&state, mount, call).await;
            let Ok(OwnedMount::Dead(device)) = owned else {
                // The plan names what is mounted there.
                return Ok(());
            };
            self.unmounter
                .unmount_dead(call, device.as_deref(), &state.path, deadline)
                .await?;
        }
    }

    /// The slot that the tools of the steps need.
    async fn tool_kind(&self, call: CallContext<'_>, device: &Device, steps: &[Step]) -> Result<Option<ToolKind>> {
        let kind = ToolKind::of(steps, true);
        if kind != Some(ToolKind::FullCheck) {
            return Ok(kind);
        }
        let superblocks = call.wrap(self.host.superblocks(quick(), device)).await?;
        Ok(ToolKind::of(steps, superblocks.demands_full_check(self.clock.now())))
    }

    async fn observe(
        &self,
        request: &StageRequest,
        disk: &Device,
        call: CallContext<'_>,
        deadline: Deadline,
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
            self.format_records.get(&device, call).await?
        };
        if format_record == FormatRecord::Current {
            // A mkfs that an earlier process started may still run.
            drop(call.wrap(self.host.lock_device(deadline, &device)).await?);
        }
        let (content, blank) = match request.access {
            Access::Mount { .. } if !in_use => {
                let read = self.content(&device, deadline, call);
                let (content, blank) = read.in_phase(Phase::BlankCheck).await?;
                (Some(content), blank)
            }
            Access::Mount { .. } | Access::Block => (None, None),
        };
        let mounted_size = self.mounted_size(request, &device, &staging, call).await?;
        let capabilities = call.wrap(self.host.capabilities(quick())).await?;
        let rejects_writes = self.observer.rejects_writes(&device, &staging).await;
        let observed = StageObservation {
            rejects_writes,
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

    /// Reads the content of an unused device. Returns the lock under which it was read if the device is blank and could
    /// be locked immediately. Only devices that appear blank are locked: udev probes a new device for a moment and
    /// skips locked ones.
    async fn content(
        &self,
        device: &Device,
        deadline: Deadline,
        call: CallContext<'_>,
    ) -> Result<(Content, Option<DeviceLock>)> {
        let lock = call.wrap(self.host.lock_if_blank(deadline, device)).await?;
        let content = match self.host.content(deadline, device).await {
            // Another mount namespace still has the filesystem mounted, or a process has a file of it open.
            Err(error) if error.io_kind() == Some(ErrorKind::ResourceBusy) => {
                let query = HolderQuery::device(device);
                return Err(in_use(self.host.as_ref(), call, device.to_string(), &query).await);
            }
            content => content.map_err(call.failed())?,
        };
        let lock = lock.filter(|_| content == Content::Blank);
        Ok((content, lock))
    }

    async fn mounted_size(
        &self,
        request: &StageRequest,
        device: &Device,
        staging: &PathState,
        call: CallContext<'_>,
    ) -> Result<Option<Bytes>> {
        match (&request.access, &staging.mount) {
            (Access::Mount { .. }, Some(mount)) if mount.is_of(device) => {
                call.wrap(self.host.mounted_size(quick(), device, mount)).await
            }
            _ => Ok(None),
        }
    }
}
