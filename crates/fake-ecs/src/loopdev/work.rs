//! Performs the work on devices.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::command::RunCommand;
use super::device;
use super::dir::{Dir, LoopError, ignore_missing};
use crate::effect::Work;
use crate::error_text::error_text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Done,
    /// The device is in use: retry later.
    Busy,
}

#[derive(Debug)]
pub(crate) struct LoopDevices {
    dir: Dir,
    commands: Arc<dyn RunCommand>,
    /// Finding a free device and setting it up are two steps.
    finding: Mutex<()>,
}

/// How long shutdown waits for devices that are still in use, such as by a running mkfs.
const PATIENCE: Duration = Duration::from_secs(15);
const TICK: Duration = Duration::from_millis(100);
const BYTES_PER_GIB: u64 = 1 << 30;

impl LoopDevices {
    /// Claims the directory and frees the devices of a crashed fake cloud.
    pub(crate) async fn open(path: &Path, commands: Arc<dyn RunCommand>) -> Result<Self, LoopError> {
        let loops = Self {
            dir: Dir::take(path).await?,
            commands,
            finding: Mutex::new(()),
        };
        let busy = loops.free_all().await?;
        if !busy.is_empty() {
            tracing::warn!(devices = ?busy, "devices of an earlier fake cloud are still in use");
        }
        loops.dir.recreate().await?;
        Ok(loops)
    }

    /// The directory with an instance's links.
    pub(crate) fn node_dir(&self, instance: &str) -> PathBuf {
        self.dir.node(instance)
    }

    /// Frees all devices and removes all files. Idempotent.
    pub(crate) async fn close(&self) -> Result<(), LoopError> {
        let busy = self.free_all().await?;
        self.dir.leave().await?;
        match busy.is_empty() {
            true => Ok(()),
            false => Err(LoopError::Busy(busy)),
        }
    }

    /// Frees all devices, and returns those that are still in use: the kernel frees them on last close.
    async fn free_all(&self) -> Result<Vec<PathBuf>, LoopError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let devices = device::find(|file| self.dir.holds(file)).await?;
            if devices.is_empty() {
                return Ok(devices);
            }
            for device in &devices {
                // After the timeout even a busy device is detached: the kernel frees it on last
                // close.
                if Instant::now() >= deadline {
                    device::detach(&self.commands, device).await?;
                } else if !device::is_busy(device).await
                    && let Err(error) = device::detach(&self.commands, device).await
                {
                    // An interrupt from the terminal may reach a command before it has left this
                    // process's group.
                    tracing::warn!(
                        ?device,
                        error = error_text(&error),
                        "cannot free a loop device; retrying"
                    );
                }
            }
            if Instant::now() >= deadline {
                return device::find(|file| self.dir.holds(file)).await;
            }
            tokio::time::sleep(TICK).await;
        }
    }

    pub(crate) async fn perform(&self, work: &Work) -> Result<Progress, LoopError> {
        match work {
            Work::CreateDisk { serial, gib, snapshot } => self.create(serial, *gib, snapshot.as_deref()).await?,
            Work::RemoveDisk { serial } => remove(&self.dir.disk(serial)).await?,
            Work::Attach { serial, instance } => self.attach(serial, instance).await?,
            Work::Detach { serial, instance } => return self.detach(serial, instance).await,
            Work::Resize { serial, gib, visible } => self.resize(serial, *gib, *visible).await?,
            Work::Cut { serial, snapshot } => {
                self.copy(&self.dir.disk(serial), &self.dir.snapshot(snapshot)).await?;
            }
            Work::RemoveSnapshot { snapshot } => remove(&self.dir.snapshot(snapshot)).await?,
        }
        Ok(Progress::Done)
    }

    async fn create(&self, serial: &str, gib: u32, snapshot: Option<&str>) -> Result<(), LoopError> {
        let file = self.dir.disk(serial);
        if let Some(snapshot) = snapshot {
            self.copy(&self.dir.snapshot(snapshot), &file).await?;
        }
        truncate(&file, gib).await
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<(), LoopError> {
        let options = ["--sparse=auto", "--reflink=auto", "--"].map(OsStr::new);
        let arguments = [&options[..], &[from.as_os_str(), to.as_os_str()]].concat();
        device::run(&self.commands, "cp", &arguments).await.map(drop)
    }

    async fn attach(&self, serial: &str, instance: &str) -> Result<(), LoopError> {
        let finding = self.finding.lock().await;
        let device = device::attach(&self.commands, &self.dir.disk(serial)).await?;
        drop(finding);
        let link = self.dir.link(instance, serial);
        if let Some(home) = link.parent() {
            let made = tokio::fs::create_dir_all(home).await;
            made.map_err(|error| LoopError::io("create", home, error))?;
        }
        remove(&link).await?;
        let linked = tokio::fs::symlink(&device, &link).await;
        linked.map_err(|error| LoopError::io("link", &link, error))
    }

    async fn detach(&self, serial: &str, instance: &str) -> Result<Progress, LoopError> {
        let devices = self.devices(serial).await?;
        for device in &devices {
            if device::is_busy(device).await {
                return Ok(Progress::Busy);
            }
        }
        remove(&self.dir.link(instance, serial)).await?;
        for device in &devices {
            device::detach(&self.commands, device).await?;
        }
        Ok(if self.devices(serial).await?.is_empty() {
            Progress::Done
        } else {
            Progress::Busy
        })
    }

    async fn resize(&self, serial: &str, gib: u32, visible: bool) -> Result<(), LoopError> {
        truncate(&self.dir.disk(serial), gib).await?;
        if visible {
            for device in self.devices(serial).await? {
                device::grow(&self.commands, &device).await?;
            }
        }
        Ok(())
    }

    async fn devices(&self, serial: &str) -> Result<Vec<PathBuf>, LoopError> {
        let file = self.dir.disk(serial);
        device::find(|backing| backing == file).await
    }
}

async fn truncate(path: &Path, gib: u32) -> Result<(), LoopError> {
    let at = |step| move |error| LoopError::io(step, path, error);
    let mut options = tokio::fs::OpenOptions::new();
    let options = options.create(true).truncate(false).write(true);
    let file = options.open(path).await.map_err(at("open"))?;
    let size = u64::from(gib) * BYTES_PER_GIB;
    file.set_len(size).await.map_err(at("grow"))
}

async fn remove(path: &Path) -> Result<(), LoopError> {
    ignore_missing(tokio::fs::remove_file(path).await).map_err(|error| LoopError::io("remove", path, error))
}
