//! The state of a mounted filesystem: its capacity, and the errors that it has recorded.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::statvfs::statvfs;

use super::btrfs;
use super::content;
use super::device::Device;
use super::error::{IoResult, Result};
use super::io_progress;
use super::mountinfo::Mount;
use super::superblock::Superblocks;
use crate::model::{Bytes, Filesystem};

#[derive(Debug)]
pub struct Vitals {
    /// The error of the system call if the filesystem has shut down; its size is still known.
    pub usage: Result<Usage>,
    /// The size of the filesystem; `None` if the device has no superblock of its type.
    pub size: Result<Option<Bytes>>,
    pub errors: Option<String>,
    /// Whether an error since the mount made the kernel reject all writes. Between Linux 6.12 and 6.15, and in stable
    /// releases of older kernels, the mount table does not show this for ext ("ext4: don't set SB_RDONLY after
    /// filesystem errors").
    pub rejects_writes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub bytes: Amount,
    /// Inodes; all zero if the filesystem allocates them dynamically (btrfs).
    pub inodes: Amount,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    pub total: u64,
    pub used: u64,
    /// Free for unprivileged users; less than total minus used if the filesystem reserves some.
    pub available: u64,
}

/// Blocks while the device does not respond.
pub(super) fn read(sys: &Path, device: &Device, mount: &Mount) -> Vitals {
    let filesystem: Option<Filesystem> = mount.kind.parse().ok();
    if filesystem.is_some() {
        // The following reads may be served from the page cache of a device that does not respond.
        io_progress::wait(sys, device.whole_name());
    }
    let superblocks = match filesystem {
        Some(_) => content::read_superblocks(device),
        None => Ok(Superblocks::default()),
    };
    let ext = superblocks.as_ref().ok().and_then(|readable| readable.ext);
    let errors = match filesystem {
        Some(Filesystem::Ext4 | Filesystem::Ext3) => {
            ext_errors(&sys.join("fs/ext4").join(&device.name), ext.map(|ext| ext.mounted))
        }
        Some(Filesystem::Btrfs) => btrfs_errors(sys, device),
        // xfs keeps no error counts: it shuts down.
        Some(Filesystem::Xfs) | None => None,
    };
    let stops = ext.is_some_and(|ext| ext.stops_after_error());
    let rejects_writes = has_ext_stopped(errors.as_deref(), mount, stops);
    let size = superblocks.and_then(|read| {
        let total = Bytes(usage(&mount.point)?.bytes.total);
        Ok(filesystem.and_then(|kind| read.mounted_size(kind, total)))
    });
    let usage = usage(&mount.point).and_then(|usage| {
        // statvfs(3) still succeeds on an xfs that has shut down; all other calls fail.
        fs::symlink_metadata(&mount.point).io_context("stat", &mount.point)?;
        Ok(usage)
    });
    Vitals {
        size,
        usage,
        errors,
        rejects_writes,
    }
}

fn usage(path: &Path) -> Result<Usage> {
    let stat = statvfs(path).io_context("take statistics of", path)?;
    let unit = stat.fragment_size();
    let used = stat.blocks().saturating_sub(stat.blocks_free());
    Ok(Usage {
        bytes: Amount {
            total: stat.blocks().saturating_mul(unit),
            used: used.saturating_mul(unit),
            available: stat.blocks_available().saturating_mul(unit),
        },
        inodes: Amount {
            total: stat.files(),
            used: stat.files().saturating_sub(stat.files_free()),
            available: stat.files_available(),
        },
    })
}

/// Whether errors since the mount of an ext filesystem stopped all writes; `by_default` is the mode in its superblock,
/// which the mount table does not repeat.
fn has_ext_stopped(errors: Option<&str>, mount: &Mount, by_default: bool) -> bool {
    let is_ext = mount.kind.parse().is_ok_and(Filesystem::is_ext);
    let stops = mount.has_super_option("errors=remount-ro") || by_default && !mount.has_super_option("errors=continue");
    // A filesystem that was mounted read-only keeps the errors of its last writable mount.
    is_ext && stops && errors.is_some() && !mount.is_super_read_only()
}

/// Errors since the mount. The kernel counts them across mounts, until a check resets the count.
fn ext_errors(dir: &Path, mounted: Option<Duration>) -> Option<String> {
    let read = |name: &str| fs::read_to_string(dir.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let count = number("errors_count").filter(|count| *count > 0)?;
    let last = number("last_error_time").map(Duration::from_secs);
    if let (Some(last), Some(mounted)) = (last, mounted)
        && last < mounted
    {
        return None;
    }
    let function = read("last_error_func").unwrap_or_default();
    let function = match function.trim() {
        "" => "a function that it does not name",
        function => function,
    };
    Some(format!("{count} errors since its last check, the last in {function}"))
}

/// The counts of btrfs last until an operator resets them.
fn btrfs_errors(sys: &Path, device: &Device) -> Option<String> {
    let filesystem = btrfs::mounted(sys, device).ok()??;
    let devices = fs::read_dir(filesystem.join("devinfo")).ok()?;
    let texts: Vec<String> = devices
        .flatten()
        .filter_map(|device| fs::read_to_string(device.path().join("error_stats")).ok())
        .collect();
    let counts = texts.iter().flat_map(|text| text.lines());
    let counts: Vec<&str> = counts.filter(|line| !line.ends_with(" 0")).collect();
    (!counts.is_empty()).then(|| format!("{} since they were last set to 0", counts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::fake::{disk, mount_of, write_file as file};

    #[test]
    fn only_errors_since_the_mount_count() {
        let dir = tempfile::tempdir().unwrap();
        let at = |seconds| ext_errors(dir.path(), Some(Duration::from_secs(seconds)));
        assert_eq!(at(0), None);
        file(dir.path(), "errors_count", "0\n");
        assert_eq!(at(0), None);
        file(dir.path(), "errors_count", "2\n");
        file(dir.path(), "last_error_time", "1000\n");
        file(dir.path(), "last_error_func", "ext4_lookup\n");
        let expected = "2 errors since its last check, the last in ext4_lookup";
        assert_eq!(at(1000).as_deref(), Some(expected));
        assert_eq!(at(1001), None);
        // Without the time of the mount, all errors count.
        assert_eq!(ext_errors(dir.path(), None).as_deref(), Some(expected));
    }

    #[test]
    fn an_ext_error_stops_writes_unless_it_is_mounted_to_continue() {
        let device = disk("vdb", 16, "bp1");
        let mut mount = mount_of(&device, "/staging", "rw");
        let stopped = |mount: &Mount, errors, default| has_ext_stopped(errors, mount, default);
        mount.super_options = "rw".to_owned();
        assert!(stopped(&mount, Some("1 error"), true));
        assert!(!stopped(&mount, None, true));
        assert!(!stopped(&mount, Some("1 error"), false));
        mount.super_options = "rw,errors=remount-ro".to_owned();
        assert!(stopped(&mount, Some("1 error"), false));
        mount.super_options = "rw,errors=continue".to_owned();
        assert!(!stopped(&mount, Some("1 error"), true));
        mount.super_options = "ro,errors=remount-ro".to_owned();
        assert!(!stopped(&mount, Some("1 error"), true));
        mount.super_options = "rw".to_owned();
        mount.kind = "btrfs".to_owned();
        assert!(!stopped(&mount, Some("1 error"), true));
    }

    #[test]
    fn nonzero_error_counts_of_the_devices_btrfs_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let sys = dir.path().join("fs/btrfs");
        for (uuid, device, writes) in [("1-1", "vdb", 0), ("2-2", "vdc", 3)] {
            file(&sys, &format!("{uuid}/devices/{device}/size"), "1");
            let text = format!("write_errs {writes}\nread_errs 0\nflush_errs 0\n");
            file(&sys, &format!("{uuid}/devinfo/1/error_stats"), &text);
        }
        let errors = |name| btrfs_errors(dir.path(), &disk(name, 16, "bp1"));
        let found = errors("vdc");
        assert_eq!(found.as_deref(), Some("write_errs 3 since they were last set to 0"));
        assert_eq!(errors("vdb"), None);
        assert_eq!(errors("vdd"), None);
    }

    #[test]
    fn the_size_is_an_error_if_the_superblock_cannot_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let device = disk("vdb-missing", 16, "bp1");
        let mut mount = mount_of(&device, "/", "rw");
        assert!(read(dir.path(), &device, &mount).size.is_err());
        mount.kind = "tmpfs".to_owned();
        assert_eq!(read(dir.path(), &device, &mount).size.unwrap(), None);
    }

    #[test]
    fn used_and_available_lie_within_the_total() {
        let usage = usage(Path::new("/")).unwrap();
        assert!(usage.bytes.total > 0);
        assert!(usage.bytes.used + usage.bytes.available <= usage.bytes.total);
    }
}
