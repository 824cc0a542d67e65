//! Executes the steps of a plan in order. If a step fails, the changes of this call are rolled back; earlier state is
//! kept.

use super::format::Formatter;
use super::observe::{CallContext, quick};
use super::plan::Step;
use super::tools::Tools;
use super::{Result, check, device_check, grow_partition, mounter};
use crate::base::{Deadline, InPhase, error_chain};
use crate::linux::filesystem;
use crate::linux::{Capability, Command, Device, DeviceLock, MountRequest};
use crate::model::{Failure, Filesystem};

/// Runs the steps on the device. `blank` is the lock under which it was read as blank, for the mkfs among them.
pub(super) async fn run_steps(
    formatter: &Formatter,
    call: CallContext<'_>,
    device: &Device,
    steps: &[Step],
    mut blank: Option<DeviceLock>,
) -> Result<()> {
    for (index, step) in steps.iter().enumerate() {
        tracing::info!(disk.id = %call.id(), device = device.name, "{}: {step}", call.operation);
        let _step = formatter.tools.operations.step(call.id(), step.to_string());
        let run = run_step(formatter, call, device, step, &mut blank);
        let done = match step.phase() {
            Some(phase) => run.in_phase(phase).await,
            None => run.await,
        };
        if let Err(error) = done {
            let reason = error_chain(&error);
            tracing::warn!(disk.id = %call.id(), error = reason, "{}: rolling back", call.operation);
            roll_back(formatter, call, steps.iter().take(index)).await;
            return Err(error);
        }
    }
    Ok(())
}

/// Runs a step. If it uses the device, this is verified to be still the device of the plan.
async fn run_step(
    formatter: &Formatter,
    call: CallContext<'_>,
    device: &Device,
    step: &Step,
    blank: &mut Option<DeviceLock>,
) -> Result<()> {
    let (host, tools) = (call.host, &formatter.tools);
    if !step.is_of_path() {
        device_check::verify(call, device).await?;
    }
    match step {
        Step::MakeDirectory(path) => call.wrap(host.make_directory(quick(), path)).await,
        Step::MakeFile(path) => call.wrap(host.make_file(quick(), path)).await,
        Step::Bind { source, target } => call.wrap(host.bind(quick(), source, target)).await,
        Step::Restrict { target, flags } => call.wrap(host.restrict(quick(), target, flags)).await,
        Step::SetReadOnly(read_only) => set_read_only(tools, call, device, *read_only).await,
        Step::Wipe => formatter.wipe(call, device).await,
        Step::RemoveFormatRecord => formatter.records.remove(call).await,
        Step::Format { filesystem, tuning } => {
            let blank = blank.take();
            formatter.format(call, device, *filesystem, tuning, blank).await
        }
        Step::Check(filesystem, fsck) => check::check(tools, call, *filesystem, *fsck, device).await,
        Step::GrowUnmounted(_, fsck) => check::grow_unmounted(tools, call, *fsck, device).await,
        Step::GrowPartition => grow_partition::grow(tools, call, device).await,
        Step::GrowMounted(filesystem, mount_point) => {
            let command = filesystem::grow_mounted(*filesystem, &device.path, mount_point);
            let grown = tools.run(call, "grow the filesystem", &command).await;
            explain_grow_failure(call, *filesystem, grown).await
        }
        Step::BindDevice(target) => call.wrap(host.bind_device(quick(), device, target)).await,
        Step::Mount(request) => mounter::mount(tools, call, device, request).await,
    }
}

/// Reverts the completed steps in reverse order, and nothing else. A filesystem that was created, checked or grown
/// is kept for the retry. The next stage or publish sets the read-only flag of the device again. Failures are
/// logged only: the caller receives the original error, and its retry starts from the current state.
async fn roll_back(
    formatter: &Formatter,
    call: CallContext<'_>,
    completed: impl DoubleEndedIterator<Item = &Step> + Send,
) {
    for step in completed.rev() {
        let reverted = format!("rolling back \"{step}\"");
        let _step = formatter.tools.operations.step(call.id(), reverted);
        let done = match step {
            Step::MakeDirectory(path) | Step::MakeFile(path) => call.host.remove_empty(quick(), path).await,
            Step::Bind { target, .. } | Step::Mount(MountRequest { target, .. }) | Step::BindDevice(target) => {
                call.host.unmount(Deadline::never(), target).await
            }
            _ => Ok(()),
        };
        if let Err(error) = done {
            let error = error_chain(&error);
            tracing::error!(disk.id = %call.id(), error, "cannot roll back a step of {}", call.operation);
            return;
        }
    }
}

/// Online resize of ext filesystems requires `CAP_SYS_RESOURCE`. The error of resize2fs does not state this.
async fn explain_grow_failure(call: CallContext<'_>, filesystem: Filesystem, grown: Result<()>) -> Result<()> {
    if grown.is_err() && filesystem.is_ext() {
        let capabilities = call.host.capabilities(quick()).await;
        if capabilities.is_ok_and(|has| !has.has(Capability::SysResource)) {
            let message = "growing a mounted ext filesystem requires CAP_SYS_RESOURCE, which this process lacks; grant \
                           it, or stage the volume again to grow it unmounted";
            return Err(call.error(Failure::CapabilityMissing, message));
        }
    }
    grown
}

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
