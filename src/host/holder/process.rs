//! What one process holds.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::stat::{major, minor};

use super::{Holder, Sought, Table, entries};
use crate::host::device::DeviceNumber;
use crate::host::mountinfo::Mount;

/// A directory of procfs; the process may end at any moment, and shows nothing then.
#[derive(Debug)]
pub(super) struct Process {
    pid: u32,
    directory: PathBuf,
}

impl Process {
    pub(super) fn new(proc: &Path, pid: u32) -> Self {
        Self {
            pid,
            directory: proc.join(pid.to_string()),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(super) fn link(&self, name: &str) -> Option<PathBuf> {
        fs::read_link(self.path(name)).ok()
    }

    /// The process as a holder, if it uses what is sought.
    pub(super) fn user(&self, sought: &Sought, table: &mut Table) -> Option<Holder> {
        let how = self.open(sought, table);
        if let Some(how) = how.or_else(|| self.place(sought, table)) {
            return Some(self.holder(how));
        }
        let point = namespace(sought, table)?;
        let (name, container) = self.words();
        Some(Holder::Namespace {
            pid: self.pid,
            name,
            container,
            point,
        })
    }

    /// The process as a holder, if it has a file of the filesystem in its memory.
    pub(super) fn mapper(&self, sought: &Sought) -> Option<Holder> {
        let maps = fs::read_to_string(self.path("maps")).ok()?;
        let is_of = |line: &&str| {
            let number = line.split_ascii_whitespace().nth(3).and_then(hexadecimal);
            number == Some(sought.number)
        };
        let line = maps.lines().find(is_of)?;
        let file = line.split_ascii_whitespace().nth(5).unwrap_or("a file");
        Some(self.holder(format!("has {file} in its memory")))
    }

    fn holder(&self, how: String) -> Holder {
        let (name, container) = self.words();
        Holder::Process {
            pid: self.pid,
            name,
            container,
            how,
        }
    }

    /// Its command and its container.
    fn words(&self) -> (String, Option<String>) {
        let name = fs::read_to_string(self.path("comm")).unwrap_or_default();
        let groups = fs::read_to_string(self.path("cgroup")).unwrap_or_default();
        (name.trim_end().to_owned(), container(&groups))
    }

    /// An open file of the filesystem, or the device itself.
    fn open(&self, sought: &Sought, table: &Table) -> Option<String> {
        entries(&self.path("fd"))
            .into_iter()
            .find_map(|descriptor| {
                let file = self.path("fd").join(&descriptor);
                let text = fs::read_link(&file).ok()?;
                // Pipes, sockets and what has no name.
                if !text.is_absolute() {
                    return None;
                }
                let information = fs::read_to_string(self.path("fdinfo").join(&descriptor)).ok()?;
                let mount = mount_id(&information)?;
                let found = table.mounts.iter().find(|(id, _)| *id == mount);
                let is_it = match found {
                    Some((_, mount)) => {
                        sought.is_kept_by(mount, table.is_own)
                            || matches!(mount.kind.as_str(), "devtmpfs" | "tmpfs")
                                && is_node(&file, sought.number)
                    }
                    // Of a mount that was detached from its path.
                    None => is_node(&file, sought.number) || is_on(&file, sought.number),
                };
                is_it.then(|| format!("has {} open", text.display()))
            })
    }

    /// Its working directory, its root or its program.
    fn place(&self, sought: &Sought, table: &Table) -> Option<String> {
        const PLACES: [(&str, &str); 3] = [
            ("cwd", "works in"),
            ("root", "has its root in"),
            ("exe", "runs"),
        ];
        PLACES.into_iter().find_map(|(name, words)| {
            let path = self.link(name)?;
            let mounts = table.mounts.iter().map(|(_, mount)| mount);
            let around = mounts.filter(|mount| path.starts_with(&mount.point));
            let mount = around.max_by_key(|mount| mount.point.components().count())?;
            sought
                .is_kept_by(mount, table.is_own)
                .then(|| format!("{words} {}", path.display()))
        })
    }
}

/// Where another namespace has it mounted; told once, of its first process.
fn namespace(sought: &Sought, table: &mut Table) -> Option<PathBuf> {
    if table.is_own || table.is_told {
        return None;
    }
    let is_it = |mount: &&Mount| sought.is_of(mount) || sought.shows(mount);
    let mount = table.mounts.iter().map(|(_, mount)| mount).find(is_it)?;
    let point = mount.point.clone();
    table.is_told = true;
    Some(point)
}

/// Looks at device nodes only: those are in memory, and looking never waits for a disk.
fn is_node(file: &Path, number: DeviceNumber) -> bool {
    fs::metadata(file).is_ok_and(|found| {
        found.file_type().is_block_device()
            && major(found.rdev()) == number.major
            && minor(found.rdev()) == number.minor
    })
}

/// Whether the file is of a filesystem on the device. One that was shut down answers nothing; no other file
/// of a detached mount does so.
fn is_on(file: &Path, number: DeviceNumber) -> bool {
    match fs::metadata(file) {
        Ok(found) => major(found.dev()) == number.major && minor(found.dev()) == number.minor,
        Err(error) => error.raw_os_error().map(Errno::from_raw) == Some(Errno::EIO),
    }
}

fn mount_id(information: &str) -> Option<u64> {
    let mut lines = information.lines();
    let id = lines.find_map(|line| line.strip_prefix("mnt_id:"))?;
    id.trim().parse().ok()
}

fn hexadecimal(pair: &str) -> Option<DeviceNumber> {
    let (major, minor) = pair.split_once(':')?;
    Some(DeviceNumber {
        major: u64::from_str_radix(major, 16).ok()?,
        minor: u64::from_str_radix(minor, 16).ok()?,
    })
}

/// The short id of the container: runtimes name a control group by the 64 digits of its id.
fn container(groups: &str) -> Option<String> {
    const WHOLE: usize = 64;
    const SHORT: usize = 12;
    let parts = groups.split(|c: char| !c.is_ascii_hexdigit());
    let id = parts.into_iter().find(|part| part.len() == WHOLE)?;
    Some(id[..SHORT].to_owned())
}
