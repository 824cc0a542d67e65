//! A host of plain values for unit tests: what is there is set, what is done is recorded, and the
//! named call can be made to fail.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::Instant;

use super::changes::Hearing;
use super::{
    Amount, Changes, Claim, Clues, Command, Content, Device, Entry, Exec, ExecError, Flushed,
    Holder, Host, HostError, Link, Mount, MountDevice, Number, Output, Result, Sought, Traces,
    Usage, Vitals,
};
use crate::base::Deadline;
use crate::model::{Bytes, Filesystem, MountFlags, Serial};

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
        is_of_dev: false,
        is_shared: false,
    }
}

/// What is there, and what has been done.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) devices: Vec<Device>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) entries: HashMap<PathBuf, Entry>,
    pub(crate) content: Option<Content>,
    /// How often the content was looked at.
    pub(crate) looks: usize,
    /// How long a look at the content takes after it has seen it.
    pub(crate) look_takes: Duration,
    /// What the content is after the first look at it, where that changes.
    pub(crate) next_content: Option<Content>,
    /// Whether devices have no node under `/dev`.
    pub(crate) lacks_nodes: bool,
    /// Who of this process has claimed a device.
    pub(crate) claim: Weak<File>,
    /// Until when somebody else has claimed the devices.
    pub(crate) claimed_until: Option<Instant>,
    /// Which devices there are after the first look at the content, where that changes.
    pub(crate) next_devices: Option<Vec<Device>>,
    pub(crate) stated_size: Option<Bytes>,
    pub(crate) has_errors: bool,
    pub(crate) may_grow_mounted_ext: bool,
    /// Whether filesystems answer no more.
    pub(crate) hangs: bool,
    /// The error number that asking a filesystem fails with.
    pub(crate) errno: Option<i32>,
    /// What filesystems have recorded of errors.
    pub(crate) errors: Option<String>,
    /// For how long devices have been there; for long where none is set.
    pub(crate) ages: HashMap<String, Duration>,
    /// Text files.
    pub(crate) files: HashMap<PathBuf, String>,
    /// Where mounts are in use.
    pub(crate) busy: HashSet<PathBuf>,
    /// Whether the kernel uses the devices.
    pub(crate) claimed: bool,
    /// How many waits it takes until neither is so; forever where none is set.
    pub(crate) free_after: Option<u32>,
    /// The waits so far.
    pub(crate) waits: u32,
    /// The call, by its name in [`State::calls`], that fails.
    pub(crate) fails: Option<&'static str>,
    /// Exit codes of programs; 0 where none is set.
    pub(crate) exit_codes: HashMap<&'static str, i32>,
    /// The node's records, as long as the host lives.
    pub(crate) kept: Option<tempfile::TempDir>,
    /// Everything that changes something, in order.
    pub(crate) calls: Vec<String>,
    /// How often a disk was searched.
    pub(crate) searches: usize,
}

/// The fake host; it is the fake [`Exec`] too, so that commands stand in the same record.
#[derive(Debug)]
pub(crate) struct Fake {
    state: Mutex<State>,
    announcer: watch::Sender<Hearing>,
}

impl Fake {
    pub(crate) fn new(state: State) -> Self {
        Self {
            state: Mutex::new(state),
            announcer: watch::Sender::new(Hearing::Good),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells that devices have changed, as the kernel does.
    pub(crate) fn announce(&self) {
        self.announcer.send_replace(Hearing::Good);
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

    async fn device(&self, _deadline: Deadline, name: &str) -> Result<Option<Device>> {
        let devices = &self.state().devices;
        Ok(devices.iter().find(|device| device.name == name).cloned())
    }

    async fn search(&self, _deadline: Deadline, clues: &Clues) -> Result<Traces> {
        let mut state = self.state();
        state.searches += 1;
        let is_meant = |device: &&Device| {
            let is_shown =
                |shown: &Serial| *shown == clues.serial || shown.is_cut_of(&clues.serial);
            device.serial.as_ref().is_some_and(is_shown)
                || clues.name.as_ref() == Some(&device.name)
        };
        Ok(Traces {
            devices: state.devices.iter().filter(is_meant).cloned().collect(),
            ..Traces::default()
        })
    }

    async fn dangling_links(&self, _deadline: Deadline) -> Result<Vec<Link>> {
        Ok(Vec::new())
    }

    fn changes(&self, _directory: Option<&Path>) -> Changes {
        Changes::new(self.announcer.subscribe())
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
        let node = node.map_or(Entry::Missing, |device| Entry::Block(device.number));
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
        })
    }

    async fn content(&self, _deadline: Deadline, device: &Device) -> Result<Content> {
        let (now, takes) = {
            let mut state = self.state();
            if let Some(next) = state.next_devices.take() {
                state.devices = next;
            }
            state.looks += 1;
            let now = state.content.clone();
            if let Some(next) = state.next_content.take() {
                state.content = Some(next);
            }
            (now, state.look_takes)
        };
        if takes > Duration::ZERO {
            tokio::time::sleep(takes).await;
        }
        now.ok_or_else(|| HostError::Unclear {
            device: device.path.clone(),
            reason: "the test says so".to_owned(),
        })
    }

    async fn claim(&self, deadline: Deadline, device: &Device) -> Result<Claim> {
        let claimed = || HostError::Claimed {
            device: device.path.clone(),
        };
        if self.state().fails == Some("claim") {
            return Err(claimed());
        }
        let claimed_until = self.state().claimed_until;
        if let Some(until) = claimed_until {
            let free = deadline.bound(tokio::time::sleep_until(until));
            free.await.map_err(|_| claimed())?;
        }
        while self.state().claim.strong_count() > 0 {
            let tick = deadline.bound(tokio::time::sleep(Duration::from_millis(50)));
            tick.await.map_err(|_| claimed())?;
        }
        let lock = Arc::new(tempfile::tempfile().unwrap());
        self.state().claim = Arc::downgrade(&lock);
        Ok(Claim::of(device, lock))
    }

    async fn claim_if_blank(&self, _deadline: Deadline, device: &Device) -> Result<Option<Claim>> {
        if self.state().content != Some(Content::Blank) {
            return Ok(None);
        }
        let at_once = Deadline::after(Duration::ZERO);
        Ok(self.claim(at_once, device).await.ok())
    }

    async fn wipe(&self, _deadline: Deadline, device: &Device) -> Result<()> {
        self.act("wipe", &device.path, |state| {
            state.content = Some(Content::Blank);
        })
    }

    async fn flush_device(&self, _deadline: Deadline, device: &Device) -> Result<()> {
        self.act("flush", &device.path, |_| {})
    }

    async fn has_errors(&self, _deadline: Deadline, _device: &Device) -> Result<bool> {
        Ok(self.state().has_errors)
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
            mount.is_of_dev = true;
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
            state.mounts.remove(top.expect("the target is mounted"));
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
            state.claimed = false;
        }
        Ok(())
    }

    async fn holders(&self, _deadline: Deadline, _sought: &Sought) -> Result<Vec<Holder>> {
        Ok(vec![Holder::Device("dm-7".to_owned())])
    }

    async fn flush(&self, _deadline: Deadline, device: &Device) -> Result<Flushed> {
        self.act("flush", &device.path, |_| {})?;
        Ok(Flushed::Free)
    }

    async fn flush_if_free(&self, _deadline: Deadline, device: &Device) -> Result<Flushed> {
        if self.state().claimed {
            return Ok(Flushed::InUse);
        }
        if self.state().lacks_nodes {
            return Ok(Flushed::Gone);
        }
        self.flush(_deadline, device).await
    }

    async fn vitals(&self, _deadline: Deadline, _device: &Device, mount: &Mount) -> Result<Vitals> {
        let state = self.state();
        if state.hangs {
            return Err(HostError::Silent {
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
            HostError::io("look at", &mount.point, error)
        };
        Ok(Vitals {
            usage: state.errno.map_or(Ok(usage), |errno| Err(failed(errno))),
            size: state.stated_size,
            errors: state.errors.clone(),
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

    async fn may_grow_mounted_ext(&self, _deadline: Deadline) -> Result<bool> {
        Ok(self.state().may_grow_mounted_ext)
    }
}
