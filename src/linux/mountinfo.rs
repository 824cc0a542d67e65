//! The mount table: `/proc/self/mountinfo`, as proc(5) describes it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use tokio::io::Interest;

use super::device::{Device, DeviceNumber, Partition};
use super::error::{HostError, IoResult, Result};
use super::uevent::watched;
use crate::base::Deadline;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The device number of the filesystem; btrfs has a number that belongs to no block device.
    pub number: DeviceNumber,
    /// The directory or file within the filesystem that is mounted.
    pub root: PathBuf,
    pub point: PathBuf,
    pub options: String,
    pub kind: String,
    /// The source, which depends on the filesystem.
    pub source: PathBuf,
    /// Options of the filesystem, shared by all its mounts.
    pub super_options: String,
    /// Whether it is a mount of the filesystem at `/dev`, whose files are device nodes. The tmpfs of a pod may contain
    /// files with the same names.
    pub is_of_dev: bool,
    /// Whether mounts below it propagate to its peer group (`shared:N`), such as from a container to the machine.
    pub is_shared: bool,
}

impl Mount {
    /// The mount that contains a path: among the longest mount points above it, the last one, which is on top.
    pub fn containing<'a>(mounts: &'a [Self], path: &Path) -> Option<&'a Self> {
        let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
        above.max_by_key(|mount| mount.point.components().count())
    }

    pub fn is_read_only(&self) -> bool {
        self.has_option("ro") || self.is_super_read_only()
    }

    /// Whether the filesystem is read-only at all mount points.
    pub fn is_super_read_only(&self) -> bool {
        self.has_super_option("ro")
    }

    /// Whether the filesystem reports that it has shut down. Not all filesystems and kernels do.
    pub fn shows_shutdown(&self) -> bool {
        self.has_super_option("shutdown")
    }

    /// Whether the kernel stopped writing after an error: the filesystem was mounted read-write and is read-only now.
    /// One that was mounted read-only has that option at its mount, too. Since Linux 6.15 ext4 reports `emergency_ro`
    /// instead.
    pub fn was_remounted_read_only(&self) -> bool {
        self.has_super_option("emergency_ro") || self.is_super_read_only() && !self.has_option("ro")
    }

    pub fn has_super_option(&self, option: &str) -> bool {
        has(&self.super_options, option)
    }

    pub fn has_option(&self, option: &str) -> bool {
        has(&self.options, option)
    }

    /// Whether a filesystem on this device or on one of its partitions is mounted.
    pub fn is_of(&self, device: &Device) -> bool {
        self.is_on(&device.name, device.number) || self.partition_of(device).is_some()
    }

    /// The device that the filesystem of this mount is on: the device itself, or one of its partitions.
    pub fn mounted_part(&self, device: &Device) -> Device {
        let partition = self.partition_of(device);
        partition.map_or_else(|| device.clone(), |partition| device.as_partition(partition))
    }

    pub fn partition_of<'a>(&self, device: &'a Device) -> Option<&'a Partition> {
        let mut partitions = device.partitions.iter();
        partitions.find(|partition| self.is_on(&partition.name, partition.number))
    }

    /// The number of a btrfs mount is not that of a block device.
    fn is_on(&self, name: &str, number: DeviceNumber) -> bool {
        if self.kind == "btrfs" {
            return self.source.file_name() == Some(name.as_ref());
        }
        self.number == number
    }

    pub fn is_node_of(&self, device: &Device) -> bool {
        self.is_of_dev && self.root.file_name() == device.path.file_name()
    }

    /// Whether it is a bind mount of the node of a device that was removed.
    pub fn is_removed_node(&self) -> bool {
        self.node_name().is_some() && self.root.to_string_lossy().ends_with(REMOVED)
    }

    /// The name of the device whose node is mounted, even if the device was removed; `None` if the mount is not that of
    /// a file in `/dev`.
    pub fn node_name(&self) -> Option<&str> {
        let root = self.root.to_str()?.strip_prefix('/')?;
        let name = root.strip_suffix(REMOVED).unwrap_or(root);
        let is_node = self.is_of_dev && !name.is_empty() && !name.contains('/');
        is_node.then_some(name)
    }

    /// Whether the root of the filesystem is mounted, and not a directory in it.
    pub fn is_whole(&self) -> bool {
        self.root == Path::new("/")
    }
}

/// The suffix of the names of removed files.
const REMOVED: &str = "//deleted";

fn has(options: &str, option: &str) -> bool {
    options.split(',').any(|given| given == option)
}

/// Clears [`Mount::is_of_dev`] for mounts of other filesystems than the one at `/dev`.
pub(super) fn set_dev(mounts: &mut [Mount], dev: DeviceNumber) {
    for mount in mounts {
        mount.is_of_dev &= mount.number == dev;
    }
}

/// The mounts of a table, in the kernel's order: of two mounts at one point, the later one is on top.
pub(super) fn parse(table: &[u8]) -> std::result::Result<Vec<Mount>, String> {
    let lines = table.split(|&byte| byte == b'\n');
    lines
        .filter(|line| !line.is_empty())
        .map(|line| {
            let error = |reason| format!("line {:?}: {reason}", String::from_utf8_lossy(line));
            parse_line(line).map_err(error)
        })
        .collect()
}

pub(super) fn topmost(step: &'static str, table: &Path, point: &Path) -> Result<Mount> {
    let mut mounts = read(table)?.into_iter();
    let topmost = mounts.rfind(|mount| mount.point == point);
    topmost.ok_or(io::ErrorKind::NotFound).io_context(step, point)
}

pub(super) fn read(table: &Path) -> Result<Vec<Mount>> {
    let bytes = fs::read(table).io_context("read", table)?;
    parse(&bytes).map_err(|reason| HostError::unexpected_format(table, reason))
}

/// Returns after a mount in this namespace has changed since the call, or at the deadline. The kernel reports a change
/// as an exceptional condition of the table (proc(5), since Linux 2.6.15).
pub(super) async fn wait_for_change(table: &Path, deadline: Deadline) -> Result<()> {
    const STEP: &str = "watch";
    // Opening a file of procfs does not block.
    let file = File::open(table).io_context(STEP, table)?;
    let file = watched(file, Interest::PRIORITY).io_context(STEP, table)?;
    match deadline.bound(file.ready(Interest::PRIORITY)).await {
        Ok(ready) => ready.map(drop).io_context(STEP, table),
        Err(_) => Ok(()),
    }
}

fn parse_line(line: &[u8]) -> std::result::Result<Mount, &'static str> {
    let mut fields = line.split(|&byte| byte == b' ');
    let mut next = || fields.next().ok_or("a field is missing");
    let (_id, _parent) = (next()?, next()?);
    let number = text(next()?)
        .parse()
        .map_err(|()| "major:minor is not a pair of numbers")?;
    let root = path(next()?);
    let point = path(next()?);
    let options = text(next()?);
    // Any number of optional fields, then a hyphen.
    let mut is_shared = false;
    loop {
        match next()? {
            b"-" => break,
            field => is_shared |= field.starts_with(b"shared:"),
        }
    }
    let kind = text(next()?);
    Ok(Mount {
        is_of_dev: matches!(kind.as_str(), "devtmpfs" | "tmpfs"),
        is_shared,
        number,
        root,
        point,
        options,
        kind,
        source: path(next()?),
        super_options: text(next()?),
    })
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(&unescape(field)).into_owned()
}

fn path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape(field)))
}

/// The kernel escapes a byte as a backslash and three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut parts = field.split(|&byte| byte == b'\\');
    let mut bytes = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let digits = part.get(..3).filter(|digits| digits.iter().all(u8::is_ascii_digit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => bytes.extend([&[byte], &part[3..]].concat()),
            None => bytes.extend([b"\\", part].concat()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_file_in_a_tmpfs_is_not_a_device_node() {
        let table = b"36 35 0:5 /vdb /target rw shared:1 - devtmpfs udev rw\n\
            37 35 0:99 /vdb /pods/volume-subpaths/0 rw - tmpfs tmpfs rw\n";
        let mut mounts = parse(table).unwrap();
        set_dev(&mut mounts, "0:5".parse().unwrap());
        let device = crate::linux::fake::disk("vdb", 16, "bp1");
        let nodes: Vec<_> = mounts.iter().map(|m| m.is_node_of(&device)).collect();
        assert_eq!(nodes, [true, false]);
    }

    #[test]
    fn optional_fields_are_skipped_and_escapes_are_decoded() {
        let table = b"36 35 7:5 / /a\\040b\\134c rw,noatime shared:1 master:2 - ext4 /dev/loop5 ro,x=1\n\
            37 35 0:6 /loop5 /t rw - devtmpfs udev rw\n";
        let mounts = parse(table).unwrap();
        assert_eq!(mounts[0].point, Path::new("/a b\\c"));
        assert!(mounts[0].is_read_only() && !mounts[0].has_option("ro"));
        assert!(mounts[0].is_shared && !mounts[1].is_shared);
        assert_eq!(mounts[0].number, DeviceNumber { major: 7, minor: 5 });
        assert_eq!(mounts[1].root, Path::new("/loop5"));
        assert!(!mounts[1].is_whole());
        let other = parse(b"36 35 7:5 / /a\\+40\\400\\08\\ rw - ext4 s rw").unwrap();
        assert_eq!(other[0].point, Path::new("/a\\+40\\400\\08\\"));
    }

    #[test]
    fn the_name_of_a_removed_node_is_returned() {
        for (line, name) in [
            ("37 35 0:6 /vdb /t rw - devtmpfs udev rw", Some("vdb")),
            ("37 35 0:6 /vdb//deleted /t rw - devtmpfs u rw", Some("vdb")),
            ("37 35 0:6 / /dev rw - devtmpfs udev rw", None),
            ("37 35 0:6 /dir/vdb /t rw - tmpfs tmpfs rw", None),
            ("37 35 254:1 /vdb /t rw - ext4 /dev/vda1 rw", None),
        ] {
            assert_eq!(parse(line.as_bytes()).unwrap()[0].node_name(), name);
        }
    }

    #[test]
    fn an_incomplete_line_is_an_error() {
        for line in ["36 35 7:5 / /a rw", "36 35 x / /a rw - ext4 s rw", "junk"] {
            assert!(parse(line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn the_table_of_this_process_is_parsed() {
        let table = std::fs::read("/proc/self/mountinfo").unwrap();
        assert!(parse(&table).unwrap().iter().any(|mount| mount.point == Path::new("/")));
    }

    fn escape(bytes: &[u8]) -> String {
        let mut text = String::new();
        for &byte in bytes {
            match byte {
                b' ' | b'\t' | b'\n' | b'\\' | 128.. => write!(text, "\\{byte:03o}").unwrap(),
                _ => text.push(char::from(byte)),
            }
        }
        text
    }

    proptest! {
        #[test]
        fn escaped_paths_are_decoded(
            root in proptest::collection::vec(1u8..=255, 0..40),
            point in proptest::collection::vec(1u8..=255, 0..40),
            optional in proptest::collection::vec("[a-z]{1,8}:[0-9]{1,3}", 0..4),
        ) {
            let optional: String = optional.iter().map(|tag| format!(" {tag}")).collect();
            let line = format!(
                "1 2 3:4 /{} /{} rw{optional} - xfs /dev/x rw\n",
                escape(&root),
                escape(&point),
            );
            let mounts = parse(line.as_bytes()).unwrap();
            prop_assert_eq!(mounts.len(), 1);
            prop_assert_eq!(&mounts[0].root.as_os_str().as_bytes()[1..], &root[..]);
            prop_assert_eq!(&mounts[0].point.as_os_str().as_bytes()[1..], &point[..]);
        }

        #[test]
        fn any_bytes_are_parsed_without_a_panic(table in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&table);
        }
    }
}
