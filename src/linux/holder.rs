//! The devices, mounts and swap areas that use a mount or a device. Only text of procfs and sysfs is read, never a file
//! of the filesystem itself, which may hang. Processes are not searched: those of pods are not visible to the plugin.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::device::{Device, DeviceNumber, backing_file};
use super::error::{IoResult, Result};
use super::mountinfo::{self, Mount};
use super::sysfs::{block_dir, names};

/// The device, and the filesystem on it wherever it is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderQuery {
    /// The number that the mount table shows.
    pub number: DeviceNumber,
    pub node: PathBuf,
    pub partitions: Vec<DeviceNumber>,
    /// The mount that is to be removed: only mounts below it block that.
    pub point: Option<PathBuf>,
}

impl HolderQuery {
    pub fn device(device: &Device) -> Self {
        Self {
            number: device.number,
            node: device.path.clone(),
            partitions: device.partitions.iter().map(|part| part.number).collect(),
            point: None,
        }
    }

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
}

/// The users for a message. Without any, a process is the user, and the text describes how to find it on the node.
pub fn list(users: &[String], query: &HolderQuery) -> String {
    const MAX: usize = 8;
    if users.is_empty() {
        let path = query.point.as_ref().unwrap_or(&query.node).display();
        return format!(
            "a process or another mount namespace; to find it, run `fuser -vm {path}` and \
             `grep -l {path} /proc/*/mountinfo` on the node"
        );
    }
    let mut words = users[..users.len().min(MAX)].join("; ");
    if users.len() > MAX {
        words.push_str(&format!("; {} more", users.len() - MAX));
    }
    words
}

/// The devices, swap areas and mounts of this namespace that use it.
///
/// # Errors
/// A file of sysfs or procfs cannot be read, so that users may be missing.
pub(super) fn find(proc: &Path, sys: &Path, query: &HolderQuery) -> Result<Vec<String>> {
    let mut users = devices(proc, sys, query)?;
    let mounts = read_mounts(proc)?;
    let blocks = |mount: &&Mount| match &query.point {
        Some(point) => mount.point != *point && mount.point.starts_with(point),
        None => query.is_of(mount),
    };
    let blocking = mounts.iter().filter(blocks);
    users.extend(blocking.map(|mount| format!("a mount at {}", mount.point.display())));
    Ok(users)
}

pub(super) fn devices(proc: &Path, sys: &Path, query: &HolderQuery) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let block = block_dir(sys)?;
    if let Some(name) = query.node.file_name() {
        found = names(&block.join(name).join("holders"))?;
    }
    let mounts = read_mounts(proc)?;
    let is_on_it =
        |file: &Path| file == query.node || Mount::containing(&mounts, file).is_some_and(|mount| query.is_of(mount));
    for name in names(&block)? {
        let file = backing_file(&block.join(&name))?;
        if file.is_some_and(|file| is_on_it(&file)) {
            found.push(name);
        }
    }
    let mut found: Vec<_> = found.iter().map(|name| format!("device {name}")).collect();
    let swaps = proc.join("swaps");
    // A kernel without swap has no such file.
    let areas = fs::read(&swaps).none_if(&[io::ErrorKind::NotFound]);
    let swaps = areas.io_context("read", &swaps)?.unwrap_or_default();
    let swaps = String::from_utf8_lossy(&swaps);
    let mut areas = swaps.lines().skip(1).filter_map(|line| line.split(' ').next());
    if areas.any(|area| is_on_it(Path::new(area))) {
        found.push("swap".to_owned());
    }
    Ok(found)
}

fn read_mounts(proc: &Path) -> Result<Vec<Mount>> {
    mountinfo::read(&proc.join("self/mountinfo"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::fake::write_file;

    const VOLUME: &str = "20 1 0:30 / / rw - overlay overlay rw\n\
        31 20 254:16 / /target rw - ext4 /dev/vdb rw\n\
        32 31 0:40 / /target/sub rw - tmpfs tmpfs rw\n";

    fn query(point: Option<&str>) -> HolderQuery {
        HolderQuery {
            number: DeviceNumber { major: 254, minor: 16 },
            node: "/dev/vdb".into(),
            partitions: Vec::new(),
            point: point.map(PathBuf::from),
        }
    }

    #[test]
    fn devices_swap_and_mounts_that_block_are_listed() {
        let world = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("proc/self/mountinfo", VOLUME),
            ("proc/swaps", "Filename\tType\tSize\n/target/swap file 4 0 -2\n"),
            ("sys/block/vdb/holders/dm-0", ""),
            ("sys/block/loop3/loop/backing_file", "/target/image\n"),
            ("sys/block/loop4/loop/backing_file", "/else/image\n"),
        ] {
            write_file(world.path(), name, text);
        }
        let (proc, sys) = (world.path().join("proc"), world.path().join("sys"));
        for (point, mount) in [
            (Some("/target"), "a mount at /target/sub"),
            (None, "a mount at /target"),
        ] {
            let found = find(&proc, &sys, &query(point)).unwrap();
            assert_eq!(found, ["device dm-0", "device loop3", "swap", mount]);
        }
    }

    #[test]
    fn an_unreadable_list_is_not_an_empty_one() {
        let world = tempfile::tempdir().unwrap();
        let (proc, sys) = (world.path().join("proc"), world.path().join("sys"));
        devices(&proc, &sys, &query(None)).unwrap_err();
        fs::create_dir_all(proc.join("self")).unwrap();
        fs::write(proc.join("self/mountinfo"), VOLUME).unwrap();
        devices(&proc, &sys, &query(None)).unwrap_err();
        fs::create_dir_all(sys.join("block")).unwrap();
        assert_eq!(devices(&proc, &sys, &query(None)).unwrap(), Vec::<String>::new());
        fs::create_dir(proc.join("swaps")).unwrap();
        devices(&proc, &sys, &query(None)).unwrap_err();
        fs::remove_dir(proc.join("swaps")).unwrap();
        fs::write(sys.join("block/vdb"), "").unwrap();
        devices(&proc, &sys, &query(None)).unwrap_err();
    }

    #[test]
    fn a_long_list_is_truncated_and_an_empty_one_describes_how_to_find_the_process() {
        let many: Vec<_> = (0..11).map(|n| format!("device dm-{n}")).collect();
        assert!(list(&many, &query(None)).ends_with("device dm-7; 3 more"));
        let process = list(&[], &query(None));
        assert!(process.contains("`fuser -vm /dev/vdb`"), "{process}");
        let process = list(&[], &query(Some("/target")));
        assert!(process.contains("`fuser -vm /target`"), "{process}");
    }
}
