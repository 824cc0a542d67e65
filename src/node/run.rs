//! Doing what a plan says, one step after another. Whatever this call has done is undone when a
//! later step fails; what was there before stays.

use std::time::Duration;

use super::observe::{Quick, quick};
use super::plan::Step;
use super::proof::Handed;
use super::request::Volume;
use super::undo::Undo;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::filesystem;
use crate::host::{Command, Device, HostError, MountDevice, Output};
use crate::model::Filesystem;

/// Bound of making, checking and growing. These are never cut off at the caller's deadline: half a
/// filesystem is worse than a late answer, and the caller's retry is told to wait meanwhile.
pub(super) const LONG: Duration = Duration::from_secs(3600);

/// What the steps are about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) volume: &'a Volume,
    /// None where only a path is left.
    pub(super) device: Option<&'a Device>,
    /// That the device is blank.
    pub(super) proof: Option<&'a Handed>,
    pub(super) verb: &'static str,
    /// How long to wait for what is in use.
    pub(super) deadline: Deadline,
}

impl Node {
    /// Does the steps.
    pub(super) async fn run(&self, subject: Subject<'_>, steps: &[Step]) -> Result<()> {
        let mut undo = Undo::default();
        for step in steps {
            tracing::info!(
                disk.id = %subject.volume.id,
                device = subject.device.map(|device| device.name.as_str()),
                "{}: {step}", subject.verb,
            );
            if let Err(error) = self.step(subject, step).await {
                self.undo(subject, undo).await;
                return Err(error);
            }
            undo.note(step);
        }
        Ok(())
    }

    async fn step(&self, subject: Subject<'_>, step: &Step) -> Result<()> {
        let host = &self.host;
        let failed = Quick::new(subject.volume, subject.verb).failed();
        match step {
            Step::MakeDirectory(path) => host.make_directory(quick(), path).await,
            Step::MakeFile(path) => host.make_file(quick(), path).await,
            Step::Bind { source, target } => host.bind(quick(), source, target).await,
            Step::RemountReadOnly(path) => host.remount_read_only(quick(), path).await,
            Step::Restrict { target, flags } => host.restrict(quick(), target, flags).await,
            Step::Unmount(path) => return self.unmount(subject, path).await,
            Step::Detach(path) => return self.detach(subject, path).await,
            Step::Remove(path) => host.remove_empty(quick(), path).await,
            Step::ForgetFormat => {
                let at = Quick::new(subject.volume, subject.verb);
                return self.forget_format(subject.volume, at).await;
            }
            Step::Flush | Step::Release if self.has_gone(subject).await? => return Ok(()),
            Step::SetDeviceReadOnly(_)
            | Step::Wipe
            | Step::Format { .. }
            | Step::Check(..)
            | Step::GrowUnmounted(..)
            | Step::GrowMounted { .. }
            | Step::BindDevice(_)
            | Step::Flush
            | Step::Release
            | Step::Mount { .. } => return self.step_on_device(subject, step).await,
        }
        .map_err(failed)
    }

    /// Whether the device has left since the plan was made, as a disk that was torn out does with the last use
    /// of it. Then there is nothing that could be written to.
    pub(super) async fn has_gone(&self, subject: Subject<'_>) -> Result<bool> {
        let Some(device) = subject.device else {
            return Ok(true);
        };
        let now = self.host.device(quick(), &device.name).await;
        let now = now.map_err(Quick::new(subject.volume, subject.verb).failed())?;
        let same = |now: Device| {
            now.number == device.number
                && now.sequence == device.sequence
                && now.backing_file == device.backing_file
        };
        let gone = !now.is_some_and(same);
        if gone {
            tracing::warn!(disk.id = %subject.volume.id, %device, "the device is gone, and with it what was not written");
        }
        Ok(gone)
    }

    /// A step on the device, which must still be the one that the plan was made for.
    async fn step_on_device(&self, subject: Subject<'_>, step: &Step) -> Result<()> {
        let device = self.same_device(subject).await?;
        let failed = Quick::new(subject.volume, subject.verb).failed();
        match step {
            Step::SetDeviceReadOnly(read_only) => {
                let flag = if *read_only { "--setro" } else { "--setrw" };
                let command = Command::new("blockdev").arg(flag).arg(&device.path);
                self.tool(subject, "set the device's access", &command)
                    .await
            }
            Step::Wipe => self.wipe(subject, device).await,
            Step::Format { filesystem, tuning } => {
                self.format(subject, device, *filesystem, tuning).await
            }
            Step::Check(filesystem, fsck) => self.check(subject, *filesystem, *fsck, device).await,
            Step::GrowUnmounted(_, fsck) => self.grow_unmounted(subject, *fsck, device).await,
            Step::GrowMounted { filesystem, at } => {
                let command = filesystem::grow_mounted(*filesystem, &device.path, at);
                let grown = self.tool(subject, "grow the filesystem", &command).await;
                self.explain_growth(subject, *filesystem, grown).await
            }
            Step::Flush => self.flush(subject, device).await,
            Step::Release => self.released(subject, device).await,
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
                let mounted = self.host.mount(Deadline::after(LONG), &request).await;
                mounted.map_err(|error| explain_mount(subject, &request, error))
            }
            Step::MakeDirectory(_)
            | Step::MakeFile(_)
            | Step::ForgetFormat
            | Step::Bind { .. }
            | Step::RemountReadOnly(_)
            | Step::Restrict { .. }
            | Step::Unmount(_)
            | Step::Detach(_)
            | Step::Remove(_) => Ok(()),
        }
    }

    pub(super) async fn same_device<'a>(&self, subject: Subject<'a>) -> Result<&'a Device> {
        let device = subject
            .device
            .expect("steps on a device are planned with one");
        let failed = Quick::new(subject.volume, subject.verb).failed();
        let now = match self.host.device(quick(), &device.name).await {
            Ok(now) => now,
            Err(error) => return Err(failed(error)),
        };
        let reason = match now {
            Some(now) if now.is_same(device) => return Ok(device),
            Some(now) => format!("it is now {now} with {}", now.identity()),
            None => "it is gone".to_owned(),
        };
        Err(failed(HostError::Changed {
            device: device.path.clone(),
            reason,
        }))
    }

    /// A mounted ext filesystem grows only for the privileged, and resize2fs tells that no better
    /// than any other refusal.
    async fn explain_growth(
        &self,
        subject: Subject<'_>,
        filesystem: Filesystem,
        grown: Result<()>,
    ) -> Result<()> {
        if grown.is_err() && filesystem::grows_unmounted(filesystem) {
            let may = self.host.may_grow_mounted_ext(quick()).await;
            if matches!(may, Ok(false)) {
                return Err(Error::NoCapability {
                    volume: subject.volume.id.clone(),
                });
            }
        }
        grown
    }

    pub(super) async fn tool(
        &self,
        subject: Subject<'_>,
        step: &'static str,
        command: &Command,
    ) -> Result<()> {
        let output = self.command(subject, step, command).await?;
        match command.success(output) {
            Ok(_) => Ok(()),
            Err(source) => Err(Error::Tool {
                volume: subject.volume.id.clone(),
                step,
                source,
            }),
        }
    }

    pub(super) async fn command(
        &self,
        subject: Subject<'_>,
        step: &'static str,
        command: &Command,
    ) -> Result<Output> {
        let output = self.exec.run(command, Deadline::after(LONG)).await;
        output.map_err(|source| Error::Tool {
            volume: subject.volume.id.clone(),
            step,
            source,
        })
    }
}

/// EINVAL is the kernel's answer to an option that it does not know, among other things.
fn explain_mount(subject: Subject<'_>, request: &MountDevice, error: HostError) -> Error {
    let volume = || subject.volume.id.clone();
    // The kernel refuses to mount a device that it must not write to, read-only or not, while there is a
    // journal to replay.
    if request.read_only && error.io_kind() == Some(std::io::ErrorKind::ReadOnlyFilesystem) {
        return Error::Unclean {
            volume: volume(),
            source: error,
        };
    }
    if error.is_corruption() {
        let device = &request.device.path;
        return Error::Broken {
            volume: volume(),
            device: request.device.to_string(),
            why: format!(
                "the kernel cannot mount it, or replay its journal ({}); run `{}` by hand",
                crate::base::chain::chain(&error),
                filesystem::repair_by_hand(request.filesystem, device)
            ),
        };
    }
    if error.io_kind() == Some(std::io::ErrorKind::InvalidInput) && !request.flags.is_empty() {
        return Error::MountOptions {
            volume: volume(),
            flags: request.flags.clone(),
            source: error,
        };
    }
    Quick::new(subject.volume, subject.verb).failed()(error)
}
