//! The real host. Every blocking call leaves the runtime here, and no call is waited for beyond its
//! deadline; a system call itself cannot be taken back.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nix::mount::MntFlags;

use super::blocking::{blocking, keyed};
use super::error::{HostError, Result};
use super::exec::Exec;
use super::host_info::HostInfo;
use super::serial::Serials;
use super::{
    Candidates, Capabilities, Content, Device, DeviceChanges, DeviceLock, Entry, FlushOutcome,
    Host, Link, Mount, MountDevice, Sought, Superblocks, Vitals, block_attribute, btrfs, content,
    device, device_lock, entry, flush, holder, mount, mount_watch, mountinfo, search, vitals, walk,
    wipe,
};
use crate::base::Deadline;
use crate::model::{Bytes, MountFlags, Serial};

/// Where the kernel's file systems are.
#[derive(Debug, Clone)]
pub struct Roots {
    pub sys: PathBuf,
    pub proc: PathBuf,
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
    serials: Serials,
    host_info: HostInfo,
}

impl Linux {
    /// The machine, which runs its probes through `exec`.
    #[must_use]
    pub fn new(exec: Arc<dyn Exec>, roots: Roots) -> Self {
        Self {
            exec,
            roots,
            serials: Serials::default(),
            host_info: HostInfo::default(),
        }
    }

    fn mountinfo(&self) -> PathBuf {
        self.roots.proc.join("self/mountinfo")
    }
}

#[async_trait]
impl Host for Linux {
    async fn devices(&self, deadline: Deadline) -> Result<Vec<Device>> {
        let Roots { sys, dev, .. } = self.roots.clone();
        let (path, serials) = (sys.clone(), self.serials.clone());
        self.serials.refresh(deadline, &sys, &path, None).await?;
        blocking(deadline, "list", &path, move || {
            device::scan(&sys, &dev, &serials)
        })
        .await
    }

    async fn device(&self, deadline: Deadline, name: &str) -> Result<Option<Device>> {
        let Roots { sys, dev, .. } = self.roots.clone();
        let path = sys.join("block").join(name);
        self.serials
            .refresh(deadline, &sys, &path, Some(name))
            .await?;
        let (serials, name) = (self.serials.clone(), name.to_owned());
        blocking(deadline, "stat", &path, move || {
            device::find(&sys, &dev, &serials, &name)
        })
        .await
    }

    async fn search(
        &self,
        deadline: Deadline,
        serial: &Serial,
        directory: Option<&Path>,
    ) -> Result<Candidates> {
        let Roots { sys, dev, .. } = self.roots.clone();
        // The key is the disk, so that a search that hangs does not affect other volumes.
        let path = PathBuf::from(serial.as_str());
        self.serials.refresh(deadline, &sys, &path, None).await?;
        let serials = self.serials.clone();
        let (serial, directory) = (serial.clone(), directory.map(Path::to_owned));
        blocking(deadline, "search for", &path, move || {
            search::search(&sys, &dev, &serials, &serial, directory.as_deref())
        })
        .await
    }

    async fn dangling_links(&self, deadline: Deadline) -> Result<Vec<Link>> {
        let dev = self.roots.dev.clone();
        let path = dev.join("disk/by-id");
        blocking(deadline, "list", &path, move || search::dangling(&dev)).await
    }

    fn changes(&self, polls_directory: bool) -> DeviceChanges {
        DeviceChanges::subscribe(&self.roots.proc, polls_directory)
    }

    async fn mounts(&self, deadline: Deadline) -> Result<Vec<Mount>> {
        let table = self.mountinfo();
        let path = table.clone();
        let dev = self.roots.dev.clone();
        blocking(deadline, "read", &path, move || {
            let mut mounts = mountinfo::read(&table)?;
            let of_dev = entry::filesystem(&dev)?;
            mountinfo::settle_dev(&mut mounts, of_dev);
            Ok(mounts)
        })
        .await
    }

    async fn real(&self, deadline: Deadline, path: &Path) -> Result<PathBuf> {
        let given = path.to_owned();
        blocking(deadline, "resolve", path, move || walk::real(&given)).await
    }

    async fn entry(&self, deadline: Deadline, path: &Path) -> Result<Entry> {
        let given = path.to_owned();
        blocking(deadline, "stat", path, move || entry::entry(&given)).await
    }

    async fn make_directory(&self, deadline: Deadline, path: &Path) -> Result<()> {
        let given = path.to_owned();
        blocking(deadline, "make the directory", path, move || {
            walk::make_directory(&given)
        })
        .await
    }

    async fn make_file(&self, deadline: Deadline, path: &Path) -> Result<()> {
        let given = path.to_owned();
        blocking(deadline, "make the file", path, move || {
            walk::make_file(&given)
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
        content::read(&*self.exec, device, deadline).await
    }

    async fn lock_if_blank(
        &self,
        deadline: Deadline,
        device: &Device,
    ) -> Result<Option<DeviceLock>> {
        device_lock::lock_if_blank(deadline, device).await
    }

    async fn lock_device(&self, deadline: Deadline, device: &Device) -> Result<DeviceLock> {
        device_lock::lock_device(deadline, device).await
    }

    async fn wipe(&self, deadline: Deadline, device: &Device) -> Result<()> {
        let chosen = device.clone();
        blocking(deadline, "wipe", &device.path, move || wipe::wipe(&chosen)).await
    }

    async fn flush_device(&self, deadline: Deadline, device: &Device) -> Result<()> {
        let path = device.path.clone();
        blocking(deadline, "flush", &device.path, move || {
            fs::File::open(&path)
                .and_then(|file| file.sync_all())
                .map_err(|error| HostError::io("flush", &path, error))
        })
        .await
    }

    async fn superblocks(&self, deadline: Deadline, device: &Device) -> Result<Superblocks> {
        let (path, size) = (device.path.clone(), device.size);
        blocking(deadline, "read", &device.path, move || {
            content::read_superblocks(&path, size)
                .map_err(|error| HostError::io("read", &path, error))
        })
        .await
    }

    async fn mount(&self, deadline: Deadline, request: &MountDevice) -> Result<()> {
        let (proc, given) = (self.roots.proc.clone(), request.clone());
        blocking(deadline, "mount on", &request.target, move || {
            mount::mount_device(&proc, &given)
        })
        .await
    }

    async fn is_btrfs_mounted(&self, deadline: Deadline, device: &Device) -> Result<bool> {
        let (sys, given) = (self.roots.sys.clone(), device.clone());
        blocking(deadline, "read", &device.path, move || {
            btrfs::is_mounted(&sys, &given)
        })
        .await
    }

    async fn btrfs_devices_with_same_uuid(
        &self,
        deadline: Deadline,
        device: &Device,
    ) -> Result<Vec<String>> {
        let (sys, given) = (self.roots.sys.clone(), device.clone());
        blocking(deadline, "read", &device.path, move || {
            btrfs::devices_with_same_uuid(&sys, &given)
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
            mount::remount_read_only(&mountinfo::topmost("remount read-only", &table, &point)?)
        })
        .await
    }

    async fn restrict(&self, deadline: Deadline, target: &Path, flags: &MountFlags) -> Result<()> {
        let (table, point, flags) = (self.mountinfo(), target.to_owned(), flags.clone());
        blocking(deadline, "restrict", target, move || {
            mount::restrict(&mountinfo::topmost("restrict", &table, &point)?, &flags)
        })
        .await
    }

    async fn unmount(&self, deadline: Deadline, target: &Path) -> Result<()> {
        let given = target.to_owned();
        blocking(deadline, "unmount", target, move || {
            mount::unmount(&given, MntFlags::empty())
        })
        .await
    }

    async fn detach(&self, deadline: Deadline, target: &Path) -> Result<()> {
        let given = target.to_owned();
        blocking(deadline, "detach", target, move || {
            mount::unmount(&given, MntFlags::MNT_DETACH)
        })
        .await
    }

    async fn mounts_change(&self, deadline: Deadline) -> Result<()> {
        mount_watch::change(&self.mountinfo(), deadline).await
    }

    async fn users(&self, deadline: Deadline, sought: &Sought) -> Result<Vec<String>> {
        let Roots { sys, proc, .. } = self.roots.clone();
        let given = sought.clone();
        blocking(deadline, "list the users of", &sought.node, move || {
            Ok(holder::find(&proc, &sys, &given))
        })
        .await
    }

    async fn flush(&self, deadline: Deadline, device: &Device) -> Result<FlushOutcome> {
        let given = device.clone();
        blocking(deadline, "flush", &device.path, move || {
            flush::flush(&given)
        })
        .await
    }

    async fn flush_if_free(&self, deadline: Deadline, device: &Device) -> Result<FlushOutcome> {
        let given = device.clone();
        let Roots { sys, proc, .. } = self.roots.clone();
        blocking(deadline, "flush", &device.path, move || {
            match flush::flush_if_free(&given)? {
                // A loop device does not claim what it is on.
                FlushOutcome::Flushed
                    if holder::is_built_on(&proc, &sys, &Sought::device(&given)) =>
                {
                    Ok(FlushOutcome::InUse)
                }
                other => Ok(other),
            }
        })
        .await
    }

    async fn block_setting(
        &self,
        deadline: Deadline,
        device: &Device,
        name: &str,
    ) -> Result<Option<String>> {
        let (sys, given, name) = (self.roots.sys.clone(), device.clone(), name.to_owned());
        // Not the key of calls that wait for the disk: statistics show whether it responds.
        let path = sys.join("block").join(given.whole_name());
        blocking(deadline, "read settings of", &path, move || {
            block_attribute::read(&sys, &given, &name)
        })
        .await
    }

    async fn set_block_setting(
        &self,
        deadline: Deadline,
        device: &Device,
        name: &str,
        value: &str,
    ) -> Result<()> {
        let (sys, given) = (self.roots.sys.clone(), device.clone());
        let (name, value) = (name.to_owned(), value.to_owned());
        let path = sys.join("block").join(given.whole_name());
        blocking(deadline, "change settings of", &path, move || {
            block_attribute::write(&sys, &given, &name, &value)
        })
        .await
    }

    async fn vitals(&self, deadline: Deadline, device: &Device, mount: &Mount) -> Result<Vitals> {
        let (sys, disk, mounted) = (self.roots.sys.clone(), device.clone(), mount.clone());
        let look = move || Ok(vitals::look(&sys, &disk, &mounted));
        // The key is the filesystem: it may be mounted at several paths.
        let (key, step) = (mount.number.to_string(), "take statistics of");
        keyed(key, deadline, Duration::MAX, step, &mount.point, look).await
    }

    async fn mounted_size(
        &self,
        deadline: Deadline,
        device: &Device,
        mount: &Mount,
    ) -> Result<Option<Bytes>> {
        let (sys, disk, mounted) = (self.roots.sys.clone(), device.clone(), mount.clone());
        let read = move || vitals::size(&sys, &disk, &mounted);
        let (key, step) = (mount.number.to_string(), "read the size of");
        keyed(key, deadline, Duration::MAX, step, &mount.point, read).await
    }

    async fn age(&self, deadline: Deadline, device: &Device) -> Result<Duration> {
        let node = device.path.clone();
        blocking(deadline, "stat", &device.path, move || entry::age(&node)).await
    }

    async fn text(&self, deadline: Deadline, path: &Path) -> Result<Option<String>> {
        let file = path.to_owned();
        blocking(deadline, "read", path, move || entry::text(&file)).await
    }

    async fn boot_id(&self, deadline: Deadline) -> Result<String> {
        self.host_info.boot_id(deadline, &self.roots.proc).await
    }

    async fn capabilities(&self, deadline: Deadline) -> Result<Capabilities> {
        let proc = &self.roots.proc;
        self.host_info.capabilities(deadline, proc).await
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;
    use crate::host::ProcessExec;

    #[tokio::test]
    async fn a_search_that_hangs_affects_only_its_disk() {
        let home = tempfile::tempdir().unwrap();
        let [sys, dev, proc] = ["sys", "dev", "proc"].map(|name| home.path().join(name));
        fs::create_dir_all(sys.join("block/vdz")).unwrap();
        // To open it takes until somebody writes.
        let fifo = sys.join("block/vdz/dev");
        mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        symlink("/dev/vdz", home.path().join("hungsearch")).unwrap();
        let host = Linux::new(Arc::new(ProcessExec), Roots { sys, proc, dev });
        let search = async |serial: &str, seconds| {
            let deadline = Deadline::after(Duration::from_secs(seconds));
            let serial = Serial::new(serial).unwrap();
            host.search(deadline, &serial, Some(home.path())).await
        };
        let hung = search("hungsearch", 2).await;
        assert!(matches!(hung, Err(HostError::TimedOut { .. })), "{hung:?}");
        let again = search("hungsearch", 60).await;
        let is_refused = matches!(again, Err(HostError::StillRunning { .. }));
        assert!(is_refused, "{again:?}");
        search("othersearch", 60).await.unwrap();
        fs::write(&fifo, "254:0").unwrap();
    }
}
