//! Executes the steps of a plan in order. If a step fails, the changes of this call are rolled back; earlier state is
//! kept.

use std::time::Duration;

use super::observe::{CallContext, quick};
use super::plan::Step;
use super::proof::ProofHandoff;
use super::request::Volume;
use super::rollback::Rollback;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::filesystem;
use crate::host::{Command, Device, HostError, MountDevice, Output};
use crate::model::Filesystem;

/// Timeout of filesystem tools and of unmounts. The caller's deadline does not stop them: an interrupted mkfs leaves an
/// incomplete filesystem. Meanwhile, retries fail with [`Error::OperationPending`].
pub(super) const TOOL_TIMEOUT: Duration = Duration::from_secs(3600);

/// The volume and the device that the steps apply to.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepContext<'a> {
    pub(super) volume: &'a Volume,
    /// `None` if the device no longer exists.
    pub(super) device: Option<&'a Device>,
    /// The proof that the device is blank, for mkfs.
    pub(super) proof: Option<&'a ProofHandoff>,
    pub(super) operation: &'static str,
    /// Bounds the wait while the volume is in use.
    pub(super) deadline: Deadline,
}

impl Node {
    pub(super) async fn run_steps(&self, context: StepContext<'_>, steps: &[Step]) -> Result<()> {
        let mut rollback = Rollback::default();
        for step in steps {
            tracing::info!(
                disk.id = %context.volume.id,
                device = context.device.map(|device| device.name.as_str()),
                "{}: {step}", context.operation,
            );
            if let Err(error) = self.run_step(context, step).await {
                self.roll_back(context, rollback).await;
                return Err(error);
            }
            rollback.record(step);
        }
        Ok(())
    }

    async fn run_step(&self, context: StepContext<'_>, step: &Step) -> Result<()> {
        let host = &self.host;
        let failed = CallContext::new(context.volume, context.operation).failed();
        match step {
            Step::MakeDirectory(path) => host.make_directory(quick(), path).await,
            Step::MakeFile(path) => host.make_file(quick(), path).await,
            Step::Bind { source, target } => host.bind(quick(), source, target).await,
            Step::RemountReadOnly(path) => host.remount_read_only(quick(), path).await,
            Step::Restrict { target, flags } => host.restrict(quick(), target, flags).await,
            Step::Unmount(path) => return self.unmount(context, path).await,
            Step::UnmountDead(path) => return self.unmount_dead(context, path).await,
            Step::Remove(path) => host.remove_empty(quick(), path).await,
            Step::RemoveFormatRecord => {
                let call = CallContext::new(context.volume, context.operation);
                return self.remove_format_record(context.volume, call).await;
            }
            Step::Flush | Step::WaitReleased if self.is_device_removed(context).await? => {
                return Ok(());
            }
            Step::SetDeviceReadOnly(_)
            | Step::Wipe
            | Step::Format { .. }
            | Step::Check(..)
            | Step::GrowUnmounted(..)
            | Step::GrowMounted { .. }
            | Step::BindDevice(_)
            | Step::Flush
            | Step::WaitReleased
            | Step::Mount { .. } => return self.run_device_step(context, step).await,
        }
        .map_err(failed)
    }

    /// Whether the device was removed after the plan was made. The device of a disk that was detached while in use
    /// disappears with its last user. Its data can no longer be written.
    pub(super) async fn is_device_removed(&self, context: StepContext<'_>) -> Result<bool> {
        let Some(device) = context.device else {
            return Ok(true);
        };
        let now = self.host.device(quick(), &device.name).await;
        let now = now.map_err(CallContext::new(context.volume, context.operation).failed())?;
        let same = |now: Device| {
            now.number == device.number
                && now.diskseq == device.diskseq
                && now.backing_file == device.backing_file
        };
        let removed = !now.is_some_and(same);
        if removed {
            tracing::warn!(disk.id = %context.volume.id, %device, "the device was removed; unwritten data is lost");
        }
        Ok(removed)
    }

    /// Runs a step on the device after verifying that it is still the device of the plan.
    async fn run_device_step(&self, context: StepContext<'_>, step: &Step) -> Result<()> {
        let device = self.verify_device(context).await?;
        let failed = CallContext::new(context.volume, context.operation).failed();
        match step {
            Step::SetDeviceReadOnly(read_only) => {
                let flag = if *read_only { "--setro" } else { "--setrw" };
                let command = Command::new("blockdev").arg(flag).arg(&device.path);
                self.run_tool(context, "set the read-only flag of the device", &command)
                    .await
            }
            Step::Wipe => self.wipe(context, device).await,
            Step::Format { filesystem, tuning } => {
                self.format(context, device, *filesystem, tuning).await
            }
            Step::Check(filesystem, fsck) => self.check(context, *filesystem, *fsck, device).await,
            Step::GrowUnmounted(_, fsck) => self.grow_unmounted(context, *fsck, device).await,
            Step::GrowMounted {
                filesystem,
                mount_point,
            } => {
                let command = filesystem::grow_mounted(*filesystem, &device.path, mount_point);
                let grown = self
                    .run_tool(context, "grow the filesystem", &command)
                    .await;
                self.explain_grow_failure(context, *filesystem, grown).await
            }
            Step::Flush => self.flush(context, device).await,
            Step::WaitReleased => self.wait_released(context, device).await,
            Step::BindDevice(target) => {
                let bound = self.host.bind_device(quick(), device, target).await;
                bound.map_err(failed)
            }
            Step::Mount {
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
                let mounted = self
                    .host
                    .mount(Deadline::after(TOOL_TIMEOUT), &request)
                    .await;
                mounted.map_err(|error| explain_mount_failure(context, &request, error))
            }
            Step::MakeDirectory(_)
            | Step::MakeFile(_)
            | Step::RemoveFormatRecord
            | Step::Bind { .. }
            | Step::RemountReadOnly(_)
            | Step::Restrict { .. }
            | Step::Unmount(_)
            | Step::UnmountDead(_)
            | Step::Remove(_) => Ok(()),
        }
    }

    /// Returns the device if its name still refers to the device of the plan.
    pub(super) async fn verify_device<'a>(&self, context: StepContext<'a>) -> Result<&'a Device> {
        let device = context
            .device
            .expect("a plan with device steps has a device");
        let failed = CallContext::new(context.volume, context.operation).failed();
        let now = match self.host.device(quick(), &device.name).await {
            Ok(now) => now,
            Err(error) => return Err(failed(error)),
        };
        let reason = match now {
            Some(now) if now.is_same_incarnation(device) => return Ok(device),
            Some(now) => format!("it is now {now} with {}", now.identity()),
            None => "it was removed".to_owned(),
        };
        Err(failed(HostError::DeviceChanged {
            device: device.path.clone(),
            reason,
        }))
    }

    /// Online resize of ext filesystems requires `CAP_SYS_RESOURCE`. The error of resize2fs does not say so.
    async fn explain_grow_failure(
        &self,
        context: StepContext<'_>,
        filesystem: Filesystem,
        grown: Result<()>,
    ) -> Result<()> {
        if grown.is_err() && filesystem::can_grow_unmounted(filesystem) {
            let may = self.host.may_grow_mounted_ext(quick()).await;
            if matches!(may, Ok(false)) {
                return Err(Error::CapabilityMissing {
                    volume: context.volume.id.clone(),
                });
            }
        }
        grown
    }

    pub(super) async fn run_tool(
        &self,
        context: StepContext<'_>,
        step: &'static str,
        command: &Command,
    ) -> Result<()> {
        let output = self.run_command(context, step, command).await?;
        match command.check_exit_code(output) {
            Ok(_) => Ok(()),
            Err(source) => Err(Error::Tool {
                volume: context.volume.id.clone(),
                step,
                source,
            }),
        }
    }

    pub(super) async fn run_command(
        &self,
        context: StepContext<'_>,
        step: &'static str,
        command: &Command,
    ) -> Result<Output> {
        let output = self.exec.run(command, Deadline::after(TOOL_TIMEOUT)).await;
        output.map_err(|source| Error::Tool {
            volume: context.volume.id.clone(),
            step,
            source,
        })
    }
}

/// Maps the error of mount(2). EINVAL can mean an unsupported mount option.
fn explain_mount_failure(
    context: StepContext<'_>,
    request: &MountDevice,
    error: HostError,
) -> Error {
    let volume = || context.volume.id.clone();
    // The kernel cannot mount a filesystem with a dirty journal from a read-only device, not even read-only.
    if request.read_only && error.io_kind() == Some(std::io::ErrorKind::ReadOnlyFilesystem) {
        return Error::JournalNotReplayed {
            volume: volume(),
            source: error,
        };
    }
    if error.is_corruption() {
        let device = &request.device.path;
        return Error::FilesystemDamaged {
            volume: volume(),
            device: request.device.to_string(),
            reason: format!(
                "the kernel cannot mount it, or replay its journal ({}); run `{}` manually",
                crate::base::error_chain(&error),
                filesystem::repair_command(request.filesystem, device)
            ),
        };
    }
    if error.io_kind() == Some(std::io::ErrorKind::InvalidInput) && !request.flags.is_empty() {
        return Error::MountOptionsRejected {
            volume: volume(),
            flags: request.flags.clone(),
            source: error,
        };
    }
    CallContext::new(context.volume, context.operation).failed()(error)
}
