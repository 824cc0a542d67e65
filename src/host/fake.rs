//! A host of plain values for unit tests: what is there is set, what is done is recorded, and the
//! named call can be made to fail.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{
    Amount, Command, Content, Device, Entry, Exec, ExecError, Host, HostError, Mount, MountDevice,
    Number, Output, Result, Usage,
};
use crate::base::Deadline;
use crate::model::{Bytes, Filesystem, Serial};

/// A whole virtio disk of 1 GiB.
pub(crate) fn disk(name: &str, minor: u64, serial: &str) -> Device {
    Device {
        name: name.to_owned(),
        path: Path::new("/dev").join(name),
        number: Number { major: 254, minor },
        sequence: Some(minor),
        size: Bytes(1 << 30),
        serial: Serial::new(serial),
        backing_file: None,
        read_only: false,
        partitions: Vec::new(),
        holders: Vec::new(),
    }
}

/// A mount of this device's filesystem, from its root.
pub(crate) fn mount_of(device: &Device, point: &str, options: &str) -> Mount {
    Mount {
        number: device.number,
        root: "/".into(),
        point: point.into(),
        options: options.to_owned(),
        kind: "ext4".to_owned(),
        source: device.path.clone(),
        super_options: "rw".to_owned(),
    }
}

/// What is there, and what has been done.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) devices: Vec<Device>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) entries: HashMap<PathBuf, Entry>,
    pub(crate) content: Option<Content>,
    /// What the content is after the first look at it, where that changes.
    pub(crate) next_content: Option<Content>,
    /// Which devices there are after the first look at the content, where that changes.
    pub(crate) next_devices: Option<Vec<Device>>,
    pub(crate) stated_size: Option<Bytes>,
    pub(crate) may_grow_mounted_ext: bool,
    /// The call, by its name in [`State::calls`], that fails.
    pub(crate) fails: Option<&'static str>,
    /// Exit codes of programs; 0 where none is set.
    pub(crate) exit_codes: HashMap<&'static str, i32>,
    /// Everything that changes something, in order.
    pub(crate) calls: Vec<String>,
}

/// The fake host; it is the fake [`Exec`] too, so that commands stand in the same record.
#[derive(Debug, Default)]
pub(crate) struct Fake(Mutex<State>);

impl Fake {
    pub(crate) fn new(state: State) -> Self {
        Self(Mutex::new(state))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn act(&self, call: &'static str, path: &Path, change: impl FnOnce(&mut State)) -> Result<()> {
        let mut state = self.state();
        state.calls.push(format!("{call} {}", path.display()));
        if state.fails == Some(call) {
            let reason = io::Error::other("the test says no");
            return Err(HostError::io(call, path, reason));
        }
        change(&mut state);
        Ok(())
    }
}

#[async_trait]
impl Exec for Fake {
    async fn run(
        &self,
        command: &Command,
        _deadline: Deadline,
    ) -> std::result::Result<Output, ExecError> {
        let mut state = self.state();
        state.calls.push(command.to_string());
        let code = command
            .program()
            .to_str()
            .and_then(|program| state.exit_codes.get(program).copied());
        Ok(Output {
            code: Some(code.unwrap_or(0)),
            stdout: String::new(),
            stderr: "so it said".to_owned(),
        })
    }
}

#[async_trait]
impl Host for Fake {
    async fn devices(&self, _deadline: Deadline) -> Result<Vec<Device>> {
        Ok(self.state().devices.clone())
    }

    async fn device_link(&self, _deadline: Deadline, _name: &str) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    async fn link(&self, _deadline: Deadline, _path: &Path) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    async fn mounts(&self, _deadline: Deadline) -> Result<Vec<Mount>> {
        Ok(self.state().mounts.clone())
    }

    async fn canonical(&self, _deadline: Deadline, path: &Path) -> Result<PathBuf> {
        Ok(path.to_owned())
    }

    async fn entry(&self, _deadline: Deadline, path: &Path) -> Result<Entry> {
        let entry = self.state().entries.get(path).copied();
        Ok(entry.unwrap_or(Entry::Missing))
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
        })
    }

    async fn content(&self, _deadline: Deadline, device: &Device) -> Result<Content> {
        let mut state = self.state();
        if let Some(next) = state.next_devices.take() {
            state.devices = next;
        }
        let now = state.content.clone();
        if let Some(next) = state.next_content.take() {
            state.content = Some(next);
        }
        now.ok_or_else(|| HostError::Unclear {
            device: device.path.clone(),
            reason: "the test says so".to_owned(),
        })
    }

    async fn filesystem_size(
        &self,
        _deadline: Deadline,
        _device: &Device,
        _filesystem: Filesystem,
    ) -> Result<Option<Bytes>> {
        Ok(self.state().stated_size)
    }

    async fn mount(&self, _deadline: Deadline, request: &MountDevice) -> Result<()> {
        self.act("mount", &request.target, |state| {
            let point = request.target.display().to_string();
            let options = if request.read_only { "ro" } else { "rw" };
            let mut mount = mount_of(&request.device, &point, options);
            mount.kind = request.filesystem.to_string();
            state.mounts.push(mount);
        })
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
            mount.root = Path::new("/").join(&device.name);
            state.mounts.push(mount);
            state
                .entries
                .insert(target.to_owned(), Entry::Block(device.number));
        })
    }

    async fn remount_read_only(&self, _deadline: Deadline, target: &Path) -> Result<()> {
        self.act("remount-ro", target, |state| {
            let mount = state.mounts.iter_mut().rfind(|mount| mount.point == target);
            mount.expect("the target is mounted").options = "ro".to_owned();
        })
    }

    async fn unmount(&self, _deadline: Deadline, target: &Path) -> Result<()> {
        self.act("unmount", target, |state| {
            let top = state.mounts.iter().rposition(|mount| mount.point == target);
            state.mounts.remove(top.expect("the target is mounted"));
        })
    }

    async fn usage(&self, _deadline: Deadline, _path: &Path) -> Result<Usage> {
        let amount = Amount {
            total: 3,
            used: 1,
            available: 2,
        };
        Ok(Usage {
            bytes: amount,
            inodes: amount,
        })
    }

    async fn may_grow_mounted_ext(&self, _deadline: Deadline) -> Result<bool> {
        Ok(self.state().may_grow_mounted_ext)
    }
}
