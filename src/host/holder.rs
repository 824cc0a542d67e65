//! Who keeps a mount or a device busy, as procfs and sysfs tell it. Only text is read, never a file of
//! the filesystem in question: that may hang.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::device::{Device, DeviceNumber};
use super::mountinfo::{self, Mount};
use crate::base::Deadline;

mod process;

use process::Process;

/// What is asked for: the filesystem on a device, wherever it is mounted, and the device itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sought {
    /// The number that the mount table shows.
    pub number: DeviceNumber,
    pub node: PathBuf,
    /// The numbers of the device's partitions.
    pub partitions: Vec<DeviceNumber>,
    /// The mount that should have come off; what lies below it is told.
    pub point: Option<PathBuf>,
}

impl Sought {
    /// Whoever uses a device.
    #[must_use]
    pub fn device(device: &Device) -> Self {
        Self {
            number: device.number,
            node: device.path.clone(),
            partitions: device.partitions.iter().map(|part| part.number).collect(),
            point: None,
        }
    }

    /// Whoever keeps a mount.
    #[must_use]
    pub fn mount(mount: &Mount) -> Self {
        Self {
            number: mount.number,
            node: mount.source.clone(),
            partitions: Vec::new(),
            point: Some(mount.point.clone()),
        }
    }

    fn is_of(&self, mount: &Mount) -> bool {
        let by_name = mount.kind == "btrfs" && mount.source.file_name() == self.node.file_name();
        mount.number == self.number || self.partitions.contains(&mount.number) || by_name
    }

    /// Whether using this mount keeps what is sought: here only the one in question, in other namespaces
    /// any, because taking off a mount here may take off theirs.
    fn is_kept_by(&self, mount: &Mount, is_own: bool) -> bool {
        let is_it = |point: &PathBuf| !is_own || mount.point == *point;
        self.is_of(mount) && self.point.as_ref().is_none_or(is_it)
    }

    /// Whether the mount is of the device's node.
    fn shows(&self, mount: &Mount) -> bool {
        mount.node_name().is_some() && mount.node_name() == self.name()
    }

    fn name(&self) -> Option<&str> {
        self.node.file_name()?.to_str()
    }
}

/// One that keeps a mount or a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    Process {
        pid: u32,
        name: String,
        /// The container it is in, as its control group tells.
        container: Option<String>,
        /// What it does with what: the verb of a clause.
        how: String,
    },
    /// Another mount namespace that has it mounted, known by its first process. What it shows may go with the
    /// mount here, and none of its processes need use it.
    Namespace {
        pid: u32,
        name: String,
        /// The container it is in, as its control group tells.
        container: Option<String>,
        /// Where it is mounted there.
        point: PathBuf,
    },
    Mount(PathBuf),
    /// A device that is built on it or on a file of it.
    Device(String),
    /// The kernel swaps to it.
    Swap,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process {
                pid,
                name,
                container,
                how,
            } => {
                process_words(f, *pid, name, container.as_deref())?;
                write!(f, ", which {how}")
            }
            Self::Namespace {
                pid,
                name,
                container,
                point,
            } => {
                f.write_str("the mount namespace of ")?;
                process_words(f, *pid, name, container.as_deref())?;
                write!(f, ", where it is mounted at {}", point.display())
            }
            Self::Mount(point) => write!(f, "a mount at {}", point.display()),
            Self::Device(name) => write!(f, "device {name}"),
            Self::Swap => write!(f, "swap"),
        }
    }
}

fn process_words(
    f: &mut fmt::Formatter<'_>,
    pid: u32,
    name: &str,
    container: Option<&str>,
) -> fmt::Result {
    write!(f, "process {pid} ({name}")?;
    if let Some(container) = container {
        write!(f, ", container {container}")?;
    }
    f.write_str(")")
}

/// All that were found, in words: who certainly blocks first.
#[must_use]
pub fn list(holders: &[Holder]) -> String {
    const MOST: usize = 8;
    let mut words: Vec<String> = holders.iter().take(MOST).map(ToString::to_string).collect();
    if holders.len() > MOST {
        words.push(format!("{} more", holders.len() - MOST));
    }
    if words.is_empty() {
        // Another kernel namespace, or a holder that has just ended.
        return "nobody that /proc shows".to_owned();
    }
    // What tells of one holder has commas of its own.
    words.join("; ")
}

/// Looks for holders until the deadline; what was found by then is told.
/// Who certainly blocks comes first, mount namespaces last.
pub(super) fn find(proc: &Path, sys: &Path, sought: &Sought, deadline: Deadline) -> Vec<Holder> {
    let mut found = devices(proc, sys, sought);
    let own = read_mounts(&proc.join("self/mountinfo"));
    found.extend(below(&own, sought));
    let mut tables = Tables::new(proc);
    let processes = pids(proc);
    let mut users = Vec::new();
    for &pid in &processes {
        if deadline.has_passed() {
            break;
        }
        let process = Process::new(proc, pid);
        users.extend(process.user(sought, tables.of(proc, &process)));
    }
    // Reading maps waits for a lock of the process, so only where nothing else shows.
    if users.is_empty() && found.is_empty() {
        for &pid in &processes {
            if deadline.has_passed() {
                break;
            }
            users.extend(Process::new(proc, pid).mapper(sought));
        }
    }
    users.sort_by_key(|user| matches!(user, Holder::Namespace { .. }));
    found.extend(users);
    found
}

/// Whether a device or swap is on it.
pub(super) fn is_built_on(proc: &Path, sys: &Path, sought: &Sought) -> bool {
    !devices(proc, sys, sought).is_empty()
}

/// The devices on it, and swap.
fn devices(proc: &Path, sys: &Path, sought: &Sought) -> Vec<Holder> {
    let mut found = Vec::new();
    let block = sys.join("block");
    if let Some(name) = sought.name() {
        let holders = entries(&block.join(name).join("holders"));
        found.extend(holders.into_iter().map(Holder::Device));
    }
    let own = read_mounts(&proc.join("self/mountinfo"));
    let is_on_it = |file: &Path| {
        file == sought.node || behind(&own, file).is_some_and(|mount| sought.is_of(mount))
    };
    for name in entries(&block) {
        let file = fs::read_to_string(block.join(&name).join("loop/backing_file"));
        if file.is_ok_and(|file| is_on_it(Path::new(file.trim_end()))) {
            found.push(Holder::Device(name));
        }
    }
    let swaps = fs::read_to_string(proc.join("swaps")).unwrap_or_default();
    let mut areas = swaps
        .lines()
        .skip(1)
        .filter_map(|line| line.split(' ').next());
    if areas.any(|area| is_on_it(Path::new(area))) {
        found.push(Holder::Swap);
    }
    found
}

/// The mounts here: below the one in question, else of the filesystem at all.
fn below(mounts: &[Mount], sought: &Sought) -> Vec<Holder> {
    let is_in_the_way = |mount: &&Mount| match &sought.point {
        Some(point) => mount.point != *point && mount.point.starts_with(point),
        None => sought.is_of(mount),
    };
    let points = mounts.iter().filter(is_in_the_way);
    points
        .map(|mount| Holder::Mount(mount.point.clone()))
        .collect()
}

/// The mount that a path is in.
fn behind<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let around = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    // Of mounts at one point the last one is on top.
    around.max_by_key(|mount| mount.point.components().count())
}

fn pids(proc: &Path) -> Vec<u32> {
    let mut pids: Vec<u32> = entries(proc)
        .iter()
        .filter_map(|n| n.parse().ok())
        .collect();
    pids.sort_unstable();
    pids
}

fn entries(directory: &Path) -> Vec<String> {
    let found = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = found
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
}

fn read_mounts(table: &Path) -> Vec<Mount> {
    // A process may end at any moment; its table is empty then.
    let bytes = fs::read(table).unwrap_or_default();
    mountinfo::parse(&bytes).unwrap_or_default()
}

/// A mount table, and whether it was told already whose it is.
#[derive(Debug, Default)]
struct Table {
    /// The id that `fdinfo` tells of, and the mount.
    mounts: Vec<(u64, Mount)>,
    is_own: bool,
    is_told: bool,
}

impl Table {
    fn read(path: &Path, is_own: bool) -> Self {
        let bytes = fs::read(path).unwrap_or_default();
        let ids = bytes
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty());
        let ids = ids.map(|line| {
            let id = line.split(|&byte| byte == b' ').next().unwrap_or_default();
            String::from_utf8_lossy(id).parse().unwrap_or_default()
        });
        let mounts = mountinfo::parse(&bytes).unwrap_or_default();
        Self {
            mounts: ids.zip(mounts).collect(),
            is_own,
            is_told: false,
        }
    }
}

/// The mount tables by mount namespace and root: thousands of processes share a few.
#[derive(Debug)]
struct Tables {
    own: Option<PathBuf>,
    /// The ids of the own mounts, once somebody hides a namespace.
    own_ids: Option<HashSet<u64>>,
    known: HashMap<(PathBuf, PathBuf), Table>,
}

impl Tables {
    fn new(proc: &Path) -> Self {
        Self {
            own: fs::read_link(proc.join("self/ns/mnt")).ok(),
            own_ids: None,
            known: HashMap::new(),
        }
    }

    fn of(&mut self, proc: &Path, process: &Process) -> &mut Table {
        let root = process.link("root").unwrap_or_default();
        let path = process.path("mountinfo");
        if let Some(namespace) = process.link("ns/mnt") {
            let is_own = Some(&namespace) == self.own.as_ref();
            let known = self.known.entry((namespace, root));
            return known.or_insert_with(|| Table::read(&path, is_own));
        }
        // A security module may hide it, even from root. No two namespaces share the id of a mount.
        let own_ids = self.own_ids.get_or_insert_with(|| {
            let own = Table::read(&proc.join("self/mountinfo"), true);
            own.mounts.into_iter().map(|(id, _)| id).collect()
        });
        let mut table = Table::read(&path, false);
        table.is_own = table.mounts.iter().any(|(id, _)| own_ids.contains(id));
        let first = table.mounts.first().map_or(0, |(id, _)| *id);
        let namespace = PathBuf::from(format!("that of mount {first}"));
        self.known.entry((namespace, root)).or_insert(table)
    }
}

#[cfg(test)]
mod tests;
