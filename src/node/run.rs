//! Executes the steps of a plan in order. If a step fails, the changes of this call are rolled back; earlier state is
//! kept.

use std::sync::Arc;

use super::check::FilesystemChecker;
use super::device_check::DeviceCheck;
use super::format::Formatter;
use super::format_record::FormatRecords;
use super::grow_partition::PartitionGrower;
use super::mounter::Mounter;
use super::observe::{CallContext, quick};
use super::plan::{DeviceStep, PathStep, Step};
use super::rollback::Rollback;
use super::tools::Tools;
use super::{Error, Result};
use crate::base::InPhase;
use crate::host::filesystem;
use crate::host::{Capability, Command, Device, DeviceLock, Host, MountDevice};
use crate::model::Filesystem;

#[derive(Debug, Clone)]
pub(super) struct StepRunner {
    pub(super) host: Arc<dyn Host>,
    pub(super) tools: Tools,
    pub(super) device_check: DeviceCheck,
    pub(super) checker: FilesystemChecker,
    pub(super) formatter: Formatter,
    pub(super) mounter: Mounter,
    pub(super) partition_grower: PartitionGrower,
    pub(super) format_records: FormatRecords,
}

impl StepRunner {
    /// Runs the steps on the device. `blank` is the lock under which it was read as blank, for the mkfs among them.
    pub(super) async fn run(
        &self,
        call: CallContext<'_>,
        device: &Device,
        steps: &[Step],
        mut blank: Option<DeviceLock>,
    ) -> Result<()> {
        let mut rollback = Rollback::new(Arc::clone(&self.host));
        for step in steps {
            tracing::info!(disk.id = %call.id(), device = device.name, "{}: {step}", call.operation);
            let _step = self.tools.operations.step(call.id(), step.to_string());
            let done = match step {
                Step::Path(step) => self.run_path_step(call, step).await,
                Step::Device(step) => {
                    let run = self.run_device_step(call, device, step, &mut blank);
                    match step.phase() {
                        Some(phase) => run.in_phase(phase).await,
                        None => run.await,
                    }
                }
            };
            if let Err(error) = done {
                rollback.run(call).await;
                return Err(error);
            }
            rollback.record(step);
        }
        Ok(())
    }

    async fn run_path_step(&self, call: CallContext<'_>, step: &PathStep) -> Result<()> {
        let host = &self.host;
        match step {
            PathStep::MakeDirectory(path) => host.make_directory(quick(), path).await,
            PathStep::MakeFile(path) => host.make_file(quick(), path).await,
            PathStep::Bind { source, target } => host.bind(quick(), source, target).await,
            PathStep::RemountReadOnly(path) => host.remount_read_only(quick(), path).await,
            PathStep::Restrict { target, flags } => host.restrict(quick(), target, flags).await,
        }
        .map_err(call.failed())
    }

    /// Runs a step on the device after verifying that it is still the device of the plan.
    async fn run_device_step(
        &self,
        call: CallContext<'_>,
        device: &Device,
        step: &DeviceStep,
        blank: &mut Option<DeviceLock>,
    ) -> Result<()> {
        self.device_check.verify(call, device).await?;
        match step {
            DeviceStep::SetReadOnly(read_only) => {
                set_read_only(&self.tools, call, device, *read_only).await
            }
            DeviceStep::Wipe => self.formatter.wipe(call, device).await,
            DeviceStep::RemoveFormatRecord => self.format_records.remove(call).await,
            DeviceStep::Format { filesystem, tuning } => {
                let blank = blank.take();
                self.formatter
                    .format(call, device, *filesystem, tuning, blank)
                    .await
            }
            DeviceStep::Check(filesystem, fsck) => {
                self.checker.check(call, *filesystem, *fsck, device).await
            }
            DeviceStep::GrowUnmounted(_, fsck) => {
                self.checker.grow_unmounted(call, *fsck, device).await
            }
            DeviceStep::GrowPartition => self.partition_grower.grow(call, device).await,
            DeviceStep::GrowMounted {
                filesystem,
                mount_point,
            } => {
                let command = filesystem::grow_mounted(*filesystem, &device.path, mount_point);
                let grown = self.tools.run(call, "grow the filesystem", &command).await;
                self.explain_grow_failure(call, *filesystem, grown).await
            }
            DeviceStep::Bind(target) => {
                let bound = self.host.bind_device(quick(), device, target).await;
                bound.map_err(call.failed())
            }
            DeviceStep::Mount {
                target,
                filesystem,
                flags,
                read_only,
            } => {
                let request = MountDevice {
                    device: device.clone(),
                    target: target.clone(),
                    filesystem: *filesystem,
                    flags: flags.clone(),
                    read_only: *read_only,
                };
                self.mounter.mount(call, &request).await
            }
        }
    }

    /// Online resize of ext filesystems requires `CAP_SYS_RESOURCE`. The error of resize2fs does not say so.
    async fn explain_grow_failure(
        &self,
        call: CallContext<'_>,
        filesystem: Filesystem,
        grown: Result<()>,
    ) -> Result<()> {
        if grown.is_err() && filesystem.is_ext() {
            let capabilities = self.host.capabilities(quick()).await;
            if capabilities.is_ok_and(|has| !has.has(Capability::SysResource)) {
                return Err(Error::CapabilityMissing {
                    volume: call.id().clone(),
                });
            }
        }
        grown
    }
}

/// Sets or clears the read-only flag of the device.
pub(super) async fn set_read_only(
    tools: &Tools,
    call: CallContext<'_>,
    device: &Device,
    read_only: bool,
) -> Result<()> {
    let flag = if read_only { "--setro" } else { "--setrw" };
    let command = Command::new("blockdev").arg(flag).arg(&device.path);
    tools
        .run(call, "set the read-only flag of the device", &command)
        .await
}
