//! The real host. Every blocking call leaves the runtime here, and no call is waited for beyond its
//! deadline; a system call itself cannot be taken back.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::error::{HostError, Result};
use super::exec::Exec;
use super::{
    Content, Device, Entry, Host, Mount, MountDevice, Usage, blockdev, device, entry, filesystem,
    mount, mountinfo, stats,
};
use crate::base::Deadline;
use crate::model::{Bytes, Filesystem};

/// Where the kernel's file systems are.
#[derive(Debug, Clone)]
pub struct Roots {
    /// sysfs.
    pub sys: PathBuf,
    /// procfs.
    pub proc: PathBuf,
    /// The device nodes.
    pub dev: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            sys: "/sys".into(),
            proc: "/proc".into(),
            dev: "/dev".into(),
        }
    }
}

/// The machine that this process runs on.
#[derive(Debug, Clone)]
pub struct Linux {
    exec: Arc<dyn Exec>,
    roots: Roots,
}

impl Linux {
    /// The machine, which runs its probes through `exec`.
    #[must_use]
    pub fn new(exec: Arc<dyn Exec>, roots: Roots) -> Self {
        Self { exec, roots }
    }

    fn mountinfo(&self) -> PathBuf {
        self.roots.proc.join("self/mountinfo")
    }
}

/// Runs a blocking call off the runtime and waits for it until the deadline.
async fn blocking<T: Send + 'static>(
    deadline: Deadline,
    step: &'static str,
    path: &Path,
    call: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match deadline.bound(tokio::task::spawn_blocking(call)).await {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that goes down cancels it.
            Err(_) => std::future::pending().await,
        },
        Err(_) => Err(HostError::Late {
            step,
            path: path.to_owned(),
        }),
    }
}

fn read_mounts(table: &Path) -> Result<Vec<Mount>> {
    let bytes = fs::read(table).map_err(|error| HostError::io("read", table, error))?;
    mountinfo::parse(&bytes).map_err(|error| HostError::Format {
        path: table.to_owned(),
        reason: error.to_string(),
    })
}

#[async_trait]
impl Host for Linux {
    async fn devices(&self, deadline: Deadline) -> Result<Vec<Device>> {
        let Roots { sys, dev, .. } = self.roots.clone();
        let path = sys.clone();
        blocking(deadline, "list", &path, move || device::scan(&sys, &dev)).await
    }

    async fn device_link(&self, deadline: Deadline, name: &str) -> Result<Option<PathBuf>> {
        let path = self.roots.dev.join("disk/by-id").join(name);
        self.link(deadline, &path).await
    }

    async fn link(&self, deadline: Deadline, path: &Path) -> Result<Option<PathBuf>> {
        let link = path.to_owned();
        blocking(deadline, "read the link", path, move || entry::link(&link)).await
    }

    async fn mounts(&self, deadline: Deadline) -> Result<Vec<Mount>> {
        let table = self.mountinfo();
        let path = table.clone();
        blocking(deadline, "read", &path, move || read_mounts(&table)).await
    }

    async fn canonical(&self, deadline: Deadline, path: &Path) -> Result<PathBuf> {
        let given = path.to_owned();
        blocking(deadline, "resolve", path, move || entry::canonical(&given)).await
    }

    async fn entry(&self, deadline: Deadline, path: &Path) -> Result<Entry> {
        let given = path.to_owned();
        blocking(deadline, "look at", path, move || entry::entry(&given)).await
    }

    async fn make_directory(&self, deadline: Deadline, path: &Path) -> Result<()> {
        let given = path.to_owned();
        blocking(deadline, "make the directory", path, move || {
            entry::make_directory(&given)
        })
        .await
    }

    async fn make_file(&self, deadline: Deadline, path: &Path) -> Result<()> {
        let given = path.to_owned();
        blocking(deadline, "make the file", path, move || {
            entry::make_file(&given)
        })
        .await
    }

    async fn remove_empty(&self, deadline: Deadline, path: &Path) -> Result<()> {
        let given = path.to_owned();
        blocking(deadline, "remove", path, move || {
            entry::remove_empty(&given)
        })
        .await
    }

    async fn content(&self, deadline: Deadline, device: &Device) -> Result<Content> {
        let (path, size) = (device.path.clone(), device.size);
        let chosen = device.clone();
        let survey = blocking(deadline, "read", &device.path, move || {
            mount::check_number(&chosen)?;
            blockdev::survey(&path, size).map_err(|error| HostError::io("read", &path, error))
        })
        .await?;
        let command = blockdev::probe_command(&device.path);
        let probe = self
            .exec
            .run(&command, deadline)
            .await
            .map_err(|source| HostError::Probe {
                device: device.path.clone(),
                source: Box::new(source),
            })?;
        blockdev::judge(&probe, &survey).map_err(|reason| HostError::Unclear {
            device: device.path.clone(),
            reason,
        })
    }

    async fn filesystem_size(
        &self,
        deadline: Deadline,
        device: &Device,
        filesystem: Filesystem,
    ) -> Result<Option<Bytes>> {
        let (path, size) = (device.path.clone(), device.size);
        blocking(deadline, "read", &device.path, move || {
            blockdev::read_head(&path, size)
                .map(|head| filesystem::stated_size(filesystem, &head))
                .map_err(|error| HostError::io("read", &path, error))
        })
        .await
    }

    async fn mount(&self, deadline: Deadline, request: &MountDevice) -> Result<()> {
        let given = request.clone();
        blocking(deadline, "mount on", &request.target, move || {
            mount::mount_device(&given)
        })
        .await
    }

    async fn bind(&self, deadline: Deadline, source: &Path, target: &Path) -> Result<()> {
        let (from, to) = (source.to_owned(), target.to_owned());
        blocking(deadline, "bind onto", target, move || {
            mount::bind(&from, &to)
        })
        .await
    }

    async fn bind_device(&self, deadline: Deadline, device: &Device, target: &Path) -> Result<()> {
        let (device, to) = (device.clone(), target.to_owned());
        blocking(deadline, "bind onto", target, move || {
            mount::bind_device(&device, &to)
        })
        .await
    }

    async fn remount_read_only(&self, deadline: Deadline, target: &Path) -> Result<()> {
        let (table, point) = (self.mountinfo(), target.to_owned());
        blocking(deadline, "remount read-only", target, move || {
            let mounts = read_mounts(&table)?;
            let existing = mounts
                .iter()
                .rfind(|mount| mount.point == point)
                .ok_or_else(|| {
                    let absent = std::io::Error::from(std::io::ErrorKind::NotFound);
                    HostError::io("remount read-only", &point, absent)
                })?;
            mount::remount_read_only(existing)
        })
        .await
    }

    async fn unmount(&self, deadline: Deadline, target: &Path) -> Result<()> {
        let given = target.to_owned();
        blocking(deadline, "unmount", target, move || mount::unmount(&given)).await
    }

    async fn usage(&self, deadline: Deadline, path: &Path) -> Result<Usage> {
        let given = path.to_owned();
        blocking(deadline, "take statistics of", path, move || {
            stats::usage(&given)
        })
        .await
    }

    async fn may_grow_mounted_ext(&self, deadline: Deadline) -> Result<bool> {
        let status = self.roots.proc.join("self/status");
        let path = status.clone();
        blocking(deadline, "read", &path, move || {
            let text = fs::read_to_string(&status)
                .map_err(|error| HostError::io("read", &status, error))?;
            has_sys_resource(&text).ok_or_else(|| HostError::Format {
                path: status,
                reason: "there is no CapEff line".to_owned(),
            })
        })
        .await
    }
}

/// Whether `CapEff` of `/proc/self/status` holds `CAP_SYS_RESOURCE` (capability 24).
fn has_sys_resource(status: &str) -> Option<bool> {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some(mask & (1 << 24) != 0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_capability_is_read_off_the_mask() {
        assert_eq!(has_sys_resource("CapEff:\t000001ffffffffff\n"), Some(true));
        assert_eq!(has_sys_resource("CapEff:\t000001fffeffffff\n"), Some(false));
        assert_eq!(has_sys_resource("Name:\tx\n"), None);
    }

    #[tokio::test]
    async fn a_call_that_hangs_is_given_up_at_the_deadline() {
        let (release, hold) = std::sync::mpsc::channel::<()>();
        let deadline = Deadline::after(Duration::from_millis(20));
        let result = blocking(deadline, "look at", Path::new("/x"), move || {
            // Ends when the sender is dropped.
            let _ = hold.recv();
            Ok(())
        })
        .await;
        assert_eq!(
            result.unwrap_err().to_string(),
            "cannot look at /x: not done at the deadline"
        );
        drop(release);
    }
}
