//! How a mounted filesystem is: how full, and what it has recorded of errors.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::content;
use super::device::Device;
use super::error::{IoResult, Result};
use super::io_progress;
use super::mountinfo::Mount;
use super::stats::{self, Usage};
use crate::model::{Bytes, Filesystem};

/// What a look at a mounted filesystem gave.
#[derive(Debug)]
pub struct Vitals {
    /// How full it is; an error of the system where it does not work any more.
    pub usage: Result<Usage>,
    /// The size of the filesystem, where it can be read.
    pub size: Option<Bytes>,
    /// Errors that it has recorded, in words.
    pub errors: Option<String>,
    /// Whether an error since the mount made the kernel reject all writes. Between Linux 6.12 and 6.15, and in stable
    /// releases of older kernels, the mount table does not show this for ext ("ext4: don't set SB_RDONLY after filesystem
    /// errors").
    pub rejects_writes: bool,
}

/// The size of a mounted filesystem; this may never return.
pub(super) fn size(sys: &Path, device: &Device, mount: &Mount) -> Result<Option<Bytes>> {
    let Ok(filesystem) = mount.kind.parse() else {
        return Ok(None);
    };
    io_progress::wait(sys, device.whole_name());
    let superblocks = content::read_superblocks(device)?;
    let total = Bytes(stats::usage(&mount.point)?.bytes.total);
    Ok(superblocks.mounted_size(filesystem, total))
}

/// Looks; this may never return.
pub(super) fn look(sys: &Path, device: &Device, mount: &Mount) -> Vitals {
    let filesystem: Option<Filesystem> = mount.kind.parse().ok();
    if filesystem.is_some() {
        // What follows may be in the page cache of a device that does not respond.
        io_progress::wait(sys, device.whole_name());
    }
    let stated = filesystem.and_then(|_| content::read_superblocks(device).ok());
    let errors = match filesystem {
        Some(Filesystem::Ext4 | Filesystem::Ext3) => {
            let mounted = stated.as_ref().and_then(|stated| stated.ext_mounted);
            ext_errors(&sys.join("fs/ext4").join(&device.name), mounted)
        }
        Some(Filesystem::Btrfs) => btrfs_errors(&sys.join("fs/btrfs"), &device.name),
        // It keeps no count: it shuts down.
        Some(Filesystem::Xfs) | None => None,
    };
    let stops = stated
        .as_ref()
        .is_some_and(|stated| stated.ext_stops_after_error);
    let rejects_writes = has_ext_stopped(errors.as_deref(), mount, stops);
    let usage = stats::usage(&mount.point).and_then(|usage| {
        // xfs answers for its sizes also after it has shut down, and for nothing else.
        fs::symlink_metadata(&mount.point)
            .map(|_| usage)
            .io_context("stat", &mount.point)
    });
    let total = usage
        .as_ref()
        .map_or(Bytes(0), |usage| Bytes(usage.bytes.total));
    let size = filesystem.and_then(|kind| stated.as_ref()?.mounted_size(kind, total));
    Vitals {
        usage,
        size,
        errors,
        rejects_writes,
    }
}

/// Whether errors since the mount of an ext filesystem stopped all writes; `by_default` is the mode in its superblock,
/// which the mount table does not repeat.
fn has_ext_stopped(errors: Option<&str>, mount: &Mount, by_default: bool) -> bool {
    let is_ext = mount.kind.parse().is_ok_and(Filesystem::is_ext);
    let stops = mount.has_super_option("errors=remount-ro")
        || by_default && !mount.has_super_option("errors=continue");
    // A filesystem that was mounted read-only keeps the errors of its last writable mount.
    is_ext && stops && errors.is_some() && !mount.is_super_read_only()
}

/// Errors since the mount: the count lasts from mount to mount, until a check takes it back.
fn ext_errors(dir: &Path, mounted: Option<Duration>) -> Option<String> {
    let count = number(&dir.join("errors_count")).filter(|count| *count > 0)?;
    let last = number(&dir.join("last_error_time")).map(Duration::from_secs);
    if let (Some(last), Some(mounted)) = (last, mounted)
        && last < mounted
    {
        return None;
    }
    let place = fs::read_to_string(dir.join("last_error_func")).unwrap_or_default();
    Some(format!(
        "{count} errors since its last check, the last in {}",
        match place.trim() {
            "" => "a function that it does not name",
            place => place,
        }
    ))
}

/// The counts of btrfs last until somebody takes them back.
fn btrfs_errors(dir: &Path, device: &str) -> Option<String> {
    let own = |entry: &fs::DirEntry| entry.path().join("devices").join(device).exists();
    let filesystem = fs::read_dir(dir).ok()?.flatten().find(own)?.path();
    let devices = fs::read_dir(filesystem.join("devinfo")).ok()?;
    let texts = devices
        .flatten()
        .filter_map(|device| fs::read_to_string(device.path().join("error_stats")).ok());
    let counts: Vec<String> = texts
        .flat_map(|text| {
            let counted = text.lines().filter(|line| !line.ends_with(" 0"));
            counted.map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let told = counts.join(", ");
    (!told.is_empty()).then(|| format!("{told} since they were last set to 0"))
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dir: &Path, path: &str, text: &str) {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

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
        let told = "2 errors since its last check, the last in ext4_lookup";
        assert_eq!(at(1000).as_deref(), Some(told));
        assert_eq!(at(1001), None);
        // Where the time of the mount is not known, they may be of now.
        assert_eq!(ext_errors(dir.path(), None).as_deref(), Some(told));
    }

    #[test]
    fn an_ext_error_stops_writes_unless_it_is_mounted_to_continue() {
        let device = crate::host::fake::disk("vdb", 16, "bp1");
        let mut mount = crate::host::fake::mount_of(&device, "/staging", "rw");
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
    fn the_counts_of_the_right_btrfs_are_told_where_they_are_not_zero() {
        let dir = tempfile::tempdir().unwrap();
        for (uuid, device, writes) in [("1-1", "vdb", 0), ("2-2", "vdc", 3)] {
            file(dir.path(), &format!("{uuid}/devices/{device}/size"), "1");
            let text = format!("write_errs {writes}\nread_errs 0\nflush_errs 0\n");
            file(dir.path(), &format!("{uuid}/devinfo/1/error_stats"), &text);
        }
        let told = btrfs_errors(dir.path(), "vdc");
        assert_eq!(
            told.as_deref(),
            Some("write_errs 3 since they were last set to 0")
        );
        assert_eq!(btrfs_errors(dir.path(), "vdb"), None);
        assert_eq!(btrfs_errors(dir.path(), "vdd"), None);
    }
}
