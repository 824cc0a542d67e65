//! Doing what a plan says, one step after another. Whatever this call has done is undone when a
//! later step fails; what was there before stays.

use std::time::Duration;

use super::observe::{Quick, quick};
use super::plan::Step;
use super::request::Volume;
use super::undo::Undo;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::filesystem::{self, Checked};
use crate::host::{Command, Content, Device, HostError, MountDevice, Output};
use crate::model::{Filesystem, MountFlags};

/// Bound of making, checking and growing. These are never cut off at the caller's deadline: half a
/// filesystem is worse than a late answer, and the caller's retry is told to wait meanwhile.
const LONG: Duration = Duration::from_secs(3600);

/// What the steps are about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) volume: &'a Volume,
    /// None where only a path is left.
    pub(super) device: Option<&'a Device>,
    pub(super) verb: &'static str,
}

impl Node {
    /// Does the steps.
    pub(super) async fn run(&self, subject: Subject<'_>, steps: &[Step]) -> Result<()> {
        let mut undo = Undo::default();
        for step in steps {
            tracing::info!(
                disk.id = %subject.volume.id,
                device = subject.device.map(|device| device.name.as_str()),
                step = ?step,
                "{}", subject.verb,
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
            // The last unmount of a filesystem writes what is dirty.
            Step::Unmount(path) => host.unmount(Deadline::after(LONG), path).await,
            Step::Remove(path) => host.remove_empty(quick(), path).await,
            Step::SetDeviceReadOnly(_)
            | Step::Format(_)
            | Step::Check(_)
            | Step::GrowUnmounted(_)
            | Step::GrowMounted { .. }
            | Step::BindDevice(_)
            | Step::Mount { .. } => return self.step_on_device(subject, step).await,
        }
        .map_err(failed)
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
            Step::Format(filesystem) => {
                self.still_blank(subject, device).await?;
                let command = filesystem::make(*filesystem, &device.path);
                self.tool(subject, "make the filesystem", &command).await
            }
            Step::Check(filesystem) => self.check(subject, *filesystem, device).await,
            Step::GrowUnmounted(filesystem) => {
                let [check, grow] = &filesystem::grow_unmounted(*filesystem, &device.path)[..]
                else {
                    return Ok(());
                };
                self.run_check(subject, device, check).await?;
                self.tool(subject, "grow the filesystem", grow).await
            }
            Step::GrowMounted { filesystem, at } => {
                let command = filesystem::grow_mounted(*filesystem, &device.path, at);
                let grown = self.tool(subject, "grow the filesystem", &command).await;
                self.explain_growth(subject, *filesystem, grown).await
            }
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
                mounted.map_err(|error| explain_mount(subject, flags, *read_only, error))
            }
            Step::MakeDirectory(_)
            | Step::MakeFile(_)
            | Step::Bind { .. }
            | Step::RemountReadOnly(_)
            | Step::Unmount(_)
            | Step::Remove(_) => Ok(()),
        }
    }

    async fn same_device<'a>(&self, subject: Subject<'a>) -> Result<&'a Device> {
        let device = subject
            .device
            .expect("steps on a device are planned with one");
        let failed = Quick::new(subject.volume, subject.verb).failed();
        let now = match self.host.devices(quick()).await {
            Ok(now) => now,
            Err(error) => return Err(failed(error)),
        };
        let reason = match now.iter().find(|now| now.name == device.name) {
            Some(now) if now.is_same(device) => return Ok(device),
            Some(now) => format!("it is now {now} with {}", now.identity()),
            None => "it is gone".to_owned(),
        };
        Err(failed(HostError::Changed {
            device: device.path.clone(),
            reason,
        }))
    }

    /// The proof that the plan was made with may be old, and mkfs may overwrite what came since.
    async fn still_blank(&self, subject: Subject<'_>, device: &Device) -> Result<()> {
        let failed = Quick::new(subject.volume, subject.verb).failed();
        match self.host.content(quick(), device).await {
            Ok(Content::Blank) => Ok(()),
            Ok(content) => Err(failed(HostError::Changed {
                device: device.path.clone(),
                reason: format!("it was blank, now it holds {content}"),
            })),
            Err(error) => Err(failed(error)),
        }
    }

    async fn check(
        &self,
        subject: Subject<'_>,
        filesystem: Filesystem,
        device: &Device,
    ) -> Result<()> {
        match filesystem::check(filesystem, &device.path) {
            Some(command) => self.run_check(subject, device, &command).await,
            None => Ok(()),
        }
    }

    async fn run_check(
        &self,
        subject: Subject<'_>,
        device: &Device,
        command: &Command,
    ) -> Result<()> {
        let output = self
            .command(subject, "check the filesystem", command)
            .await?;
        match filesystem::judge_check(output.code) {
            Checked::Clean => Ok(()),
            Checked::Repaired => {
                tracing::warn!(disk.id = %subject.volume.id, said = output.stdout.trim(), "filesystem repaired");
                Ok(())
            }
            Checked::Broken => Err(Error::Broken {
                volume: subject.volume.id.clone(),
                device: device.to_string(),
                code: output.code,
                said: format!("{} {}", output.stdout.trim(), output.stderr.trim()),
            }),
        }
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

    async fn tool(
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

    async fn command(
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
fn explain_mount(
    subject: Subject<'_>,
    flags: &MountFlags,
    read_only: bool,
    error: HostError,
) -> Error {
    // The kernel refuses to mount a device that it must not write to, read-only or not, while there is a
    // journal to replay.
    if read_only && error.io_kind() == Some(std::io::ErrorKind::ReadOnlyFilesystem) {
        return Error::Unclean {
            volume: subject.volume.id.clone(),
            source: error,
        };
    }
    if error.io_kind() == Some(std::io::ErrorKind::InvalidInput) && !flags.is_empty() {
        return Error::MountOptions {
            volume: subject.volume.id.clone(),
            flags: flags.clone(),
            source: error,
        };
    }
    Quick::new(subject.volume, subject.verb).failed()(error)
}
