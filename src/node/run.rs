//! Executes the steps of a plan in order. If a step fails, the changes of this call are rolled back; earlier state is
//! kept.

use super::format::Formatter;
use super::observe::{CallContext, quick};
use super::plan::{DeviceStep, PathStep, Step};
use super::tools::Tools;
use super::{Error, Result, check, device_check, grow_partition, mounter};
use crate::base::{Deadline, InPhase, error_chain};
use crate::linux::filesystem;
use crate::linux::{Capability, Command, Device, DeviceLock, MountDevice};
use crate::model::Filesystem;

#[derive(Debug, Clone)]
pub(super) struct StepRunner {
    pub(super) tools: Tools,
    pub(super) formatter: Formatter,
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
        for (index, step) in steps.iter().enumerate() {
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
                let reason = error_chain(&error);
                tracing::warn!(disk.id = %call.id(), error = reason, "{}: rolling back", call.operation);
                self.roll_back(call, steps.iter().take(index)).await;
                return Err(error);
            }
        }
        Ok(())
    }

    async fn run_path_step(&self, call: CallContext<'_>, step: &PathStep) -> Result<()> {
        let host = &self.tools.host;
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
        let tools = &self.tools;
        device_check::verify(&*tools.host, call, device).await?;
        match step {
            DeviceStep::SetReadOnly(read_only) => set_read_only(tools, call, device, *read_only).await,
            DeviceStep::Wipe => self.formatter.wipe(call, device).await,
            DeviceStep::RemoveFormatRecord => self.formatter.records.remove(call).await,
            DeviceStep::Format { filesystem, tuning } => {
                let blank = blank.take();
                self.formatter.format(call, device, *filesystem, tuning, blank).await
            }
            DeviceStep::Check(filesystem, fsck) => check::check(tools, call, *filesystem, *fsck, device).await,
            DeviceStep::GrowUnmounted(_, fsck) => check::grow_unmounted(tools, call, *fsck, device).await,
            DeviceStep::GrowPartition => grow_partition::grow(tools, call, device).await,
            DeviceStep::GrowMounted {
                filesystem,
                mount_point,
            } => {
                let command = filesystem::grow_mounted(*filesystem, &device.path, mount_point);
                let grown = tools.run(call, "grow the filesystem", &command).await;
                self.explain_grow_failure(call, *filesystem, grown).await
            }
            DeviceStep::Bind(target) => call.wrap(tools.host.bind_device(quick(), device, target)).await,
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
                mounter::mount(tools, call, &request).await
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
            let capabilities = self.tools.host.capabilities(quick()).await;
            if capabilities.is_ok_and(|has| !has.has(Capability::SysResource)) {
                return Err(Error::CapabilityMissing {
                    volume: call.id().clone(),
                });
            }
        }
        grown
    }

    /// Reverts the completed steps in reverse order, and nothing else. A filesystem that was created, checked or grown
    /// is kept for the retry. The next stage or publish sets the read-only flag of the device again. Failures are
    /// logged only: the caller receives the original error, and its retry starts from the current state.
    async fn roll_back(&self, call: CallContext<'_>, completed: impl DoubleEndedIterator<Item = &Step> + Send) {
        let host = &self.tools.host;
        for step in completed.rev() {
            let reverted = format!("rolling back \"{step}\"");
            let _step = self.tools.operations.step(call.id(), reverted);
            let done = match step {
                Step::Path(PathStep::MakeDirectory(path) | PathStep::MakeFile(path)) => {
                    host.remove_empty(quick(), path).await
                }
                Step::Path(PathStep::Bind { target, .. })
                | Step::Device(DeviceStep::Mount { target, .. } | DeviceStep::Bind(target)) => {
                    host.unmount(Deadline::never(), target).await
                }
                Step::Path(_) | Step::Device(_) => Ok(()),
            };
            if let Err(error) = done {
                let error = error_chain(&error);
                tracing::error!(disk.id = %call.id(), error, "cannot roll back a step of {}", call.operation);
                return;
            }
        }
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
    tools.run(call, "set the read-only flag of the device", &command).await
}
