//! The host that the process runs on. Blocking calls run on threads outside the runtime, and callers wait for them
//! until their deadline; a system call itself cannot be canceled.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nix::mount::MntFlags;

use super::blocking::{blocking, blocking_io, keyed};
use super::device::{DeviceReader, Roots};
use super::error::{HostError, Result};
use super::exec::Exec;
use super::serial::Serials;
use super::{
    Candidates, Capabilities, Content, Device, DeviceChanges, DeviceLock, Entry, FlushOutcome, HolderQuery, Host,
    Mount, MountRequest, Superblocks, Vitals, btrfs, content, device_lock, entry, flush, holder, mount, mountinfo,
    search, sysfs, vitals, walk, wipe,
};
use crate::base::Deadline;
use crate::model::{MountFlags, Serial};

#[derive(Debug, Clone)]
pub struct Linux {
    exec: Arc<dyn Exec>,
    reader: DeviceReader,
}

impl Linux {
    /// The machine, which runs its probes through `exec`.
    pub fn new(exec: Arc<dyn Exec>, roots: Roots) -> Self {
        let serials = Serials::default();
        let reader = DeviceReader { roots, serials };
        Self { exec, reader }
    }

    fn mountinfo(&self) -> PathBuf {
        self.reader.roots.proc.join("self/mountinfo")
    }

    /// Runs a call that reads devices, after the serials of the named one or of all have been read.
    async fn read_devices<T: Send + 'static>(
        &self,
        deadline: Deadline,
        step: &'static str,
        key: &Path,
        only: Option<&str>,
        call: impl FnOnce(&DeviceReader) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let reader = self.reader.clone();
        let refreshed = reader.serials.refresh(deadline, &reader.roots.sys, key, only);
        refreshed.await?;
        blocking(deadline, step, key, move |_| call(&reader)).await
    }

    fn block_dir(&self, device: &Device) -> PathBuf {
        self.reader.roots.sys.join("block").join(device.whole_name())
    }

    /// Runs a blocking call on a device. The key is its node.
    async fn on_device<T: Send + 'static>(
        &self,
        deadline: Deadline,
        step: &'static str,
        device: &Device,
        call: impl FnOnce(&Roots, &Device) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (roots, chosen) = (self.reader.roots.clone(), device.clone());
        let call = move |_: &Path| call(&roots, &chosen);
        blocking(deadline, step, &device.path, call).await
    }
}

#[async_trait]
impl Host for Linux {
    async fn devices(&self, deadline: Deadline) -> Result<Vec<Device>> {
        let key = &self.reader.roots.sys;
        self.read_devices(deadline, "list", key, None, DeviceReader::scan).await
    }

    async fn device(&self, deadline: Deadline, name: &str) -> Result<Option<Device>> {
        let key = self.reader.roots.sys.join("block").join(name);
        let wanted = name.to_owned();
        let read = move |reader: &DeviceReader| reader.read(&wanted);
        self.read_devices(deadline, "stat", &key, Some(name), read).await
    }

    async fn search(&self, deadline: Deadline, serial: &Serial, directory: Option<&Path>) -> Result<Candidates> {
        let (wanted, directory) = (serial.clone(), directory.map(Path::to_owned));
        let search = move |reader: &DeviceReader| search::search(reader, &wanted, directory.as_deref());
        // The key is the disk, so that a search that hangs does not affect other volumes.
        let key = Path::new(serial.as_str());
        self.read_devices(deadline, "search for", key, None, search).await
    }

    fn changes(&self, polls_directory: bool) -> DeviceChanges {
        DeviceChanges::subscribe(&self.reader.roots.proc, polls_directory)
    }

    async fn mounts(&self, deadline: Deadline) -> Result<Vec<Mount>> {
        let dev = self.reader.roots.dev.clone();
        blocking(deadline, "read", &self.mountinfo(), move |table| {
            let mut mounts = mountinfo::read(table)?;
            mountinfo::set_dev(&mut mounts, entry::filesystem(&dev)?);
            Ok(mounts)
        })
        .await
    }

    async fn real(&self, deadline: Deadline, path: &Path) -> Result<PathBuf> {
        blocking_io(deadline, "resolve", path, walk::real).await
    }

    async fn entry(&self, deadline: Deadline, path: &Path) -> Result<Entry> {
        blocking(deadline, "stat", path, entry::entry).await
    }

    async fn make_directory(&self, deadline: Deadline, path: &Path) -> Result<()> {
        blocking(deadline, "make the directory", path, walk::make_directory).await
    }

    async fn make_file(&self, deadline: Deadline, path: &Path) -> Result<()> {
        blocking(deadline, "make the file", path, walk::make_file).await
    }

    async fn remove_empty(&self, deadline: Deadline, path: &Path) -> Result<()> {
        blocking(deadline, "remove", path, entry::remove_empty).await
    }

    async fn content(&self, deadline: Deadline, device: &Device) -> Result<Content> {
        content::read(&*self.exec, device, deadline).await
    }

    async fn lock_if_blank(&self, deadline: Deadline, device: &Device) -> Result<Option<DeviceLock>> {
        device_lock::lock_if_blank(deadline, device).await
    }

    async fn lock_device(&self, deadline: Deadline, device: &Device) -> Result<DeviceLock> {
        device_lock::lock_device(deadline, device).await
    }

    async fn wipe(&self, deadline: Deadline, device: &Device) -> Result<()> {
        let wipe = |_: &Roots, device: &Device| wipe::wipe(device);
        self.on_device(deadline, "wipe", device, wipe).await
    }

    async fn superblocks(&self, deadline: Deadline, device: &Device) -> Result<Superblocks> {
        let read = |_: &Roots, device: &Device| content::read_superblocks(device);
        self.on_device(deadline, "read", device, read).await
    }

    async fn mount(&self, deadline: Deadline, device: &Device, request: &MountRequest) -> Result<()> {
        let (proc, device, wanted) = (self.reader.roots.proc.clone(), device.clone(), request.clone());
        let mount = move |_: &Path| mount::mount_device(&proc, &device, &wanted);
        blocking(deadline, "mount on", &request.target, mount).await
    }

    async fn is_btrfs_mounted(&self, deadline: Deadline, device: &Device) -> Result<bool> {
        let read = |roots: &Roots, device: &Device| Ok(btrfs::mounted(&roots.sys, device)?.is_some());
        self.on_device(deadline, "read", device, read).await
    }

    async fn btrfs_devices_with_same_uuid(&self, deadline: Deadline, device: &Device) -> Result<Vec<String>> {
        let read = |roots: &Roots, device: &Device| btrfs::devices_with_same_uuid(&roots.sys, device);
        self.on_device(deadline, "read", device, read).await
    }

    async fn bind(&self, deadline: Deadline, source: &Path, target: &Path) -> Result<()> {
        let source = source.to_owned();
        let bind = move |target: &Path| mount::bind(&source, target);
        blocking(deadline, "bind onto", target, bind).await
    }

    async fn bind_device(&self, deadline: Deadline, device: &Device, target: &Path) -> Result<()> {
        let device = device.clone();
        let bind = move |target: &Path| mount::bind_device(&device, target);
        blocking(deadline, "bind onto", target, bind).await
    }

    async fn restrict(&self, deadline: Deadline, target: &Path, flags: &MountFlags) -> Result<()> {
        let (table, flags) = (self.mountinfo(), flags.clone());
        let restrict = move |target: &Path| mount::restrict(&table, target, &flags);
        blocking(deadline, mount::RESTRICT, target, restrict).await
    }

    async fn unmount(&self, deadline: Deadline, target: &Path) -> Result<()> {
        let unmount = |target: &Path| mount::unmount(target, MntFlags::empty());
        blocking(deadline, "unmount", target, unmount).await
    }

    async fn detach(&self, deadline: Deadline, target: &Path) -> Result<()> {
        let detach = |target: &Path| mount::unmount(target, MntFlags::MNT_DETACH);
        blocking(deadline, "detach", target, detach).await
    }

    async fn mounts_change(&self, deadline: Deadline) -> Result<()> {
        mountinfo::wait_for_change(&self.mountinfo(), deadline).await
    }

    async fn users(&self, deadline: Deadline, query: &HolderQuery) -> Result<Vec<String>> {
        let (Roots { sys, proc, .. }, given) = (self.reader.roots.clone(), query.clone());
        let find = move |_: &Path| holder::find(&proc, &sys, &given);
        blocking(deadline, "list the users of", &query.node, find).await
    }

    async fn flush(&self, deadline: Deadline, device: &Device) -> Result<FlushOutcome> {
        let flush = |_: &Roots, device: &Device| flush::flush(device);
        self.on_device(deadline, "flush", device, flush).await
    }

    async fn flush_if_free(&self, deadline: Deadline, device: &Device) -> Result<FlushOutcome> {
        let flush = |Roots { proc, sys, .. }: &Roots, device: &Device| {
            let outcome = flush::flush_if_free(device)?;
            // A loop device does not claim the device of its backing file.
            if outcome == FlushOutcome::Flushed && !holder::devices(proc, sys, &HolderQuery::device(device))?.is_empty()
            {
                return Ok(FlushOutcome::InUse);
            }
            Ok(outcome)
        };
        self.on_device(deadline, "flush", device, flush).await
    }

    async fn block_setting(&self, deadline: Deadline, device: &Device, name: &str) -> Result<Option<String>> {
        // Not the key of calls that wait for the disk: statistics show whether it responds.
        let file = self.block_dir(device).join(name);
        blocking_io(deadline, "read", &file, sysfs::read_setting).await
    }

    async fn set_block_setting(&self, deadline: Deadline, device: &Device, name: &str, value: &str) -> Result<()> {
        let value = value.to_owned();
        let file = self.block_dir(device).join(name);
        blocking_io(deadline, "set", &file, move |file| sysfs::write_setting(file, &value)).await
    }

    async fn vitals(&self, deadline: Deadline, device: &Device, mount: &Mount) -> Result<Vitals> {
        let (sys, device, mounted) = (self.reader.roots.sys.clone(), device.clone(), mount.clone());
        let read = move |_: &Path| Ok(vitals::read(&sys, &device, &mounted));
        // The key is the filesystem: it may be mounted at several paths.
        let key = mount.number.to_string();
        keyed(key, deadline, "take statistics of", &mount.point, read).await
    }

    async fn age(&self, deadline: Deadline, device: &Device) -> Result<Duration> {
        blocking_io(deadline, "stat", &device.path, entry::age).await
    }

    async fn text(&self, deadline: Deadline, path: &Path) -> Result<Option<String>> {
        blocking_io(deadline, "read", path, entry::text).await
    }

    async fn boot_id(&self, deadline: Deadline) -> Result<String> {
        let path = self.reader.roots.proc.join("sys/kernel/random/boot_id");
        let read = |path: &Path| Ok(fs::read_to_string(path)?.trim().to_owned());
        blocking_io(deadline, "read", &path, read).await
    }

    async fn capabilities(&self, deadline: Deadline) -> Result<Capabilities> {
        let path = self.reader.roots.proc.join("self/status");
        let read = |path: &Path| Ok(Capabilities::parse(&fs::read_to_string(path)?));
        let capabilities = blocking_io(deadline, "read", &path, read).await?;
        let reason = "CapEff is missing or not a hexadecimal number";
        capabilities.ok_or_else(|| HostError::unexpected_format(&path, reason))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;
    use crate::linux::ProcessExec;

    #[tokio::test]
    async fn a_search_that_hangs_affects_only_its_disk() {
        let home = tempfile::tempdir().unwrap();
        let [sys, dev, proc] = ["sys", "dev", "proc"].map(|name| home.path().join(name));
        fs::create_dir_all(sys.join("block/vdz")).unwrap();
        // Opening it blocks until a writer opens it.
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
