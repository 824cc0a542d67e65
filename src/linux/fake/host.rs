//! The calls of the fake host.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;

use super::{FakeHost, mount_of};
use crate::base::Deadline;
use crate::linux::superblock::ExtState;
use crate::linux::{
    Amount, Candidates, Capabilities, Content, Device, DeviceChanges, DeviceLock, DeviceNumber, Entry, FlushOutcome,
    HolderQuery, Host, HostError, Link, Mount, MountRequest, Result, Superblocks, Usage, Vitals,
};
use crate::model::{Filesystem, MountFlags, Serial};

#[async_trait]
impl Host for FakeHost {
    async fn devices(&self, _deadline: Deadline) -> Result<Vec<Device>> {
        Ok(self.state().devices.clone())
    }

    async fn device(&self, _deadline: Deadline, name: &str) -> Result<Option<Device>> {
        let devices = &self.state().devices;
        Ok(devices.iter().find(|device| device.name == name).cloned())
    }

    async fn search(&self, _deadline: Deadline, serial: &Serial, _directory: Option<&Path>) -> Result<Candidates> {
        let mut state = self.state();
        state.searches += 1;
        let links = state.by_id_links.iter();
        let by_id: Vec<Link> = links
            .filter(|link| link.path.ends_with(format!("virtio-{serial}")))
            .cloned()
            .collect();
        let is_candidate = |device: &&Device| {
            let is_target = |link: &Link| link.target_name() == Some(device.name.as_str());
            device.serial.as_ref() == Some(serial) || by_id.iter().any(is_target)
        };
        Ok(Candidates {
            devices: state.devices.iter().filter(is_candidate).cloned().collect(),
            pending: (state.devices.iter())
                .filter(|device| device.serial_pending)
                .map(|device| device.name.clone())
                .collect(),
            by_id,
            ..Candidates::default()
        })
    }

    fn changes(&self, _polls_directory: bool) -> DeviceChanges {
        DeviceChanges::fake(self.notifier.subscribe())
    }

    async fn mounts(&self, _deadline: Deadline) -> Result<Vec<Mount>> {
        Ok(self.state().mounts.clone())
    }

    async fn real(&self, _deadline: Deadline, path: &Path) -> Result<PathBuf> {
        Ok(path.to_owned())
    }

    async fn entry(&self, _deadline: Deadline, path: &Path) -> Result<Entry> {
        let state = self.state();
        let node = state.devices.iter().find(|device| device.path == path);
        let node = node.map_or(Entry::Missing, |device| Entry::BlockDevice(device.number));
        Ok(state.entries.get(path).copied().unwrap_or(node))
    }

    async fn make_directory(&self, _deadline: Deadline, path: &Path) -> Result<()> {
        self.act("mkdir", path, |state| {
            state.entries.insert(path.to_owned(), Entry::Directory);
        })
    }

    async fn make_file(&self, _deadline: Deadline, path: &Path) -> Result<()> {
        self.act("touch", path, |state| {
            state.entries.insert(path.to_owned(), Entry::File);
        })
    }

    async fn remove_empty(&self, _deadline: Deadline, path: &Path) -> Result<()> {
        self.act("remove", path, |state| {
            state.entries.remove(path);
            state.in_use_until_removed.take_if(|until| until == path);
        })
    }

    async fn content(&self, _deadline: Deadline, device: &Device) -> Result<Content> {
        let content = {
            let mut state = self.state();
            if let Some(next) = state.next_devices.take() {
                state.devices = next;
            }
            // The device is opened exclusively.
            if state.in_use {
                let busy = io::Error::from(io::ErrorKind::ResourceBusy);
                return Err(HostError::io("read", &device.path, busy));
            }
            state.content_reads += 1;
            let content = state.content.clone();
            if let Some(next) = state.next_content.take() {
                state.content = Some(next);
            }
            content
        };
        content.ok_or_else(|| HostError::AmbiguousContent {
            device: device.path.clone(),
            reason: "injected error".to_owned(),
        })
    }

    async fn lock_device(&self, deadline: Deadline, device: &Device) -> Result<DeviceLock> {
        self.lock(deadline, device).await
    }

    async fn lock_if_blank(&self, _deadline: Deadline, device: &Device) -> Result<Option<DeviceLock>> {
        if self.state().content != Some(Content::Blank) {
            return Ok(None);
        }
        let immediately = Deadline::after(Duration::ZERO);
        Ok(self.lock_device(immediately, device).await.ok())
    }

    async fn wipe(&self, _deadline: Deadline, device: &Device) -> Result<()> {
        self.act("wipe", &device.path, |state| {
            state.content = Some(Content::Blank);
        })
    }

    async fn superblocks(&self, _deadline: Deadline, _device: &Device) -> Result<Superblocks> {
        let state = self.state();
        let size = |filesystem| Some((filesystem, state.stated_size?));
        Ok(Superblocks {
            sizes: Filesystem::ALL.into_iter().filter_map(size).collect(),
            has_btrfs_log: state.has_btrfs_log,
            ext: Some(ExtState {
                state: if state.has_errors { 3 } else { 1 },
                ..ExtState::default()
            }),
            ..Superblocks::default()
        })
    }

    async fn mount(&self, _deadline: Deadline, device: &Device, request: &MountRequest) -> Result<()> {
        if self.state().duplicate_mounts > 0 {
            self.state().duplicate_mounts -= 1;
            let duplicate = io::Error::from(io::ErrorKind::AlreadyExists);
            return Err(HostError::io("mount on", &request.target, duplicate));
        }
        if let Some(errno) = self.state().mount_errno {
            let error = io::Error::from_raw_os_error(errno);
            return Err(HostError::io("mount on", &request.target, error));
        }
        self.act("mount", &request.target, |state| {
            let point = request.target.display().to_string();
            let options = if request.read_only { "ro" } else { "rw" };
            let mut mount = mount_of(device, &point, options);
            if state.mounts_another_device {
                mount.number.minor += 16;
            }
            mount.kind = request.filesystem.to_string();
            state.mounts.push(mount);
        })
    }

    async fn is_btrfs_mounted(&self, _deadline: Deadline, _device: &Device) -> Result<bool> {
        Ok(!self.state().mounts_another_device)
    }

    async fn btrfs_devices_with_same_uuid(&self, _deadline: Deadline, _device: &Device) -> Result<Vec<String>> {
        Ok(self.state().same_uuid.clone())
    }

    async fn bind(&self, _deadline: Deadline, source: &Path, target: &Path) -> Result<()> {
        self.act("bind", target, |state| {
            let origin = state.mounts.iter().rfind(|mount| mount.point == source);
            let mut mount = origin.expect("the source is mounted").clone();
            mount.point = target.to_owned();
            state.mounts.push(mount);
        })
    }

    async fn bind_device(&self, _deadline: Deadline, device: &Device, target: &Path) -> Result<()> {
        self.act("bind", target, |state| {
            let mut mount = mount_of(device, &target.display().to_string(), "rw");
            mount.kind = "devtmpfs".to_owned();
            mount.number = DeviceNumber { major: 0, minor: 5 };
            mount.is_of_dev = true;
            mount.root = Path::new("/").join(&device.name);
            state.mounts.push(mount);
            state
                .entries
                .insert(target.to_owned(), Entry::BlockDevice(device.number));
        })
    }

    async fn restrict(&self, _deadline: Deadline, target: &Path, flags: &MountFlags) -> Result<()> {
        self.act("restrict", target, |state| {
            let mount = state.mounts.iter_mut().rfind(|mount| mount.point == target);
            let options = &mut mount.expect("the target is mounted").options;
            options.push_str(&format!(",{flags}"));
        })
    }

    async fn unmount(&self, _deadline: Deadline, target: &Path) -> Result<()> {
        if self.state().busy.contains(target) {
            let busy = io::Error::from(io::ErrorKind::ResourceBusy);
            return Err(HostError::io("unmount", target, busy));
        }
        self.act("unmount", target, |state| {
            let top = state.mounts.iter().rposition(|mount| mount.point == target);
            let mount = state.mounts.remove(top.expect("the target is mounted"));
            if mount.is_of_dev {
                state.entries.insert(target.to_owned(), Entry::File);
            }
        })
    }

    async fn detach(&self, _deadline: Deadline, target: &Path) -> Result<()> {
        self.act("detach", target, |state| {
            let top = state.mounts.iter().rposition(|mount| mount.point == target);
            state.mounts.remove(top.expect("the target is mounted"));
        })
    }

    async fn mounts_change(&self, deadline: Deadline) -> Result<()> {
        let _ = deadline.bound(std::future::pending::<()>()).await;
        let mut state = self.state();
        state.waits += 1;
        if Some(state.waits) == state.free_after {
            state.busy.clear();
            state.in_use = false;
        }
        Ok(())
    }

    async fn users(&self, _deadline: Deadline, _sought: &HolderQuery) -> Result<Vec<String>> {
        Ok(vec!["device dm-7".to_owned()])
    }

    async fn flush(&self, _deadline: Deadline, device: &Device) -> Result<FlushOutcome> {
        self.act("flush", &device.path, |_| {})?;
        Ok(match self.state().lacks_nodes {
            true => FlushOutcome::Removed,
            false => FlushOutcome::Flushed,
        })
    }

    async fn flush_if_free(&self, _deadline: Deadline, device: &Device) -> Result<FlushOutcome> {
        let in_use = self.state().in_use || self.state().in_use_until_removed.is_some();
        if in_use {
            return Ok(FlushOutcome::InUse);
        }
        if self.state().lacks_nodes {
            return Ok(FlushOutcome::Removed);
        }
        self.flush(_deadline, device).await
    }

    async fn block_setting(&self, _deadline: Deadline, _device: &Device, name: &str) -> Result<Option<String>> {
        Ok(self.state().block_settings.get(name).cloned())
    }

    async fn set_block_setting(&self, _deadline: Deadline, _device: &Device, name: &str, value: &str) -> Result<()> {
        self.act("set", Path::new(name), |state| {
            state.block_settings.insert(name.to_owned(), value.to_owned());
        })
    }

    async fn vitals(&self, _deadline: Deadline, device: &Device, mount: &Mount) -> Result<Vitals> {
        let state = self.state();
        if state.hangs {
            return Err(HostError::StillRunning {
                step: "take statistics of",
                path: mount.point.clone(),
                since: Duration::from_secs(9),
            });
        }
        let amount = Amount {
            total: 3,
            used: 1,
            available: 2,
        };
        let usage = Usage {
            bytes: amount,
            inodes: amount,
        };
        let failed = |errno| {
            let error = io::Error::from_raw_os_error(errno);
            HostError::io("stat", &mount.point, error)
        };
        let unreadable = || HostError::io("read", &device.path, io::Error::other("injected error"));
        Ok(Vitals {
            usage: state.errno.map_or(Ok(usage), |errno| Err(failed(errno))),
            size: match state.failing_call {
                Some("read") => Err(unreadable()),
                _ => Ok(state.stated_size),
            },
            errors: state.errors.clone(),
            rejects_writes: state.rejects_writes,
        })
    }

    async fn age(&self, _deadline: Deadline, device: &Device) -> Result<Duration> {
        let ages = &self.state().ages;
        Ok(ages.get(&device.name).copied().unwrap_or(Duration::MAX))
    }

    async fn text(&self, _deadline: Deadline, path: &Path) -> Result<Option<String>> {
        Ok(self.state().files.get(path).cloned())
    }

    async fn boot_id(&self, _deadline: Deadline) -> Result<String> {
        Ok("boot-1".to_owned())
    }

    async fn capabilities(&self, _deadline: Deadline) -> Result<Capabilities> {
        Ok(self.state().capabilities)
    }
}
