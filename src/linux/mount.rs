//! Mounts by system call instead of mount(8): failures are errno values, `/etc/fstab` and mount helpers have no effect,
//! and the device is checked immediately before.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::device::{Device, check_number};
use super::error::{IoResult, Result};
use super::filesystem;
use super::mountinfo;
use super::walk;
use crate::model::{Filesystem, MountFlags};

/// The step of [`restrict`] in errors.
pub(super) const RESTRICT: &str = "add options to the mount at";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountRequest {
    pub target: PathBuf,
    pub filesystem: Filesystem,
    pub flags: MountFlags,
    /// Whether to mount it read-only, regardless of the flags.
    pub read_only: bool,
}

impl fmt::Display for MountRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = if self.read_only { "read-only" } else { "writable" };
        write!(f, "as {}, {access}, at {}", self.filesystem, self.target.display())?;
        if self.flags.is_empty() {
            return Ok(());
        }
        write!(f, " with options {}", self.flags)
    }
}

pub(super) fn mount_device(proc: &Path, device: &Device, request: &MountRequest) -> Result<()> {
    let (mut flags, data) = translate(request.filesystem, &request.flags, enforces_labels(proc));
    flags.set(MsFlags::MS_RDONLY, request.read_only);
    check_number(device)?;
    let source = Some(device.path.as_path());
    let filesystem = Some((request.filesystem.as_str(), data.as_str()));
    mount_onto("mount on", source, &request.target, filesystem, flags)
}

pub(super) fn bind(source: &Path, target: &Path) -> Result<()> {
    let opened = walk::open("bind from", source, OFlag::empty())?;
    let source = walk::path_of(&opened);
    mount_onto("bind onto", Some(&source), target, None, MsFlags::MS_BIND)
}

pub(super) fn bind_device(device: &Device, target: &Path) -> Result<()> {
    check_number(device)?;
    let source = Some(device.path.as_path());
    mount_onto("bind onto", source, target, None, MsFlags::MS_BIND)
}

/// Adds options of one mount to the topmost one at a path. Options of the filesystem are ignored. mount(2) sets all
/// options of a mount, so the present ones are repeated.
pub(super) fn restrict(table: &Path, target: &Path, added: &MountFlags) -> Result<()> {
    let existing = mountinfo::topmost(RESTRICT, table, target)?;
    let has = |option: &str| existing.has_option(option) || added.iter().any(|given| given == option);
    let of_one_mount = FLAGS[..OF_ONE_MOUNT].iter().filter(|(option, ..)| has(option));
    let mut flags: MsFlags = of_one_mount.map(|(.., flag)| *flag).collect();
    flags |= MsFlags::MS_BIND | MsFlags::MS_REMOUNT;
    if flags.contains(MsFlags::MS_NOATIME) {
        flags.remove(MsFlags::MS_RELATIME);
    }
    mount_onto(RESTRICT, None, target, None, flags)
}

/// mount(2) on a target that is opened without following symlinks; with the type and the options of a filesystem.
fn mount_onto(
    step: &'static str,
    source: Option<&Path>,
    target: &Path,
    filesystem: Option<(&str, &str)>,
    flags: MsFlags,
) -> Result<()> {
    let opened = walk::open(step, target, OFlag::empty())?;
    let (kind, data) = filesystem.unzip();
    mount(source, &walk::path_of(&opened), kind, flags, data).io_context(step, target)
}

/// A descriptor of the mount itself would keep it in use, so its name is looked up in the opened parent directory.
pub(super) fn unmount(target: &Path, flags: MntFlags) -> Result<()> {
    const STEP: &str = "unmount";
    let entry = walk::open_parent(STEP, target)?;
    umount2(&entry.path(), flags | MntFlags::UMOUNT_NOFOLLOW).io_context(STEP, target)
}

/// Options that are flags of mount(2), and their opposites. The first ones belong to one mount.
const FLAGS: [(&str, &str, MsFlags); 15] = [
    ("ro", "rw", MsFlags::MS_RDONLY),
    ("nosuid", "suid", MsFlags::MS_NOSUID),
    ("nodev", "dev", MsFlags::MS_NODEV),
    ("noexec", "exec", MsFlags::MS_NOEXEC),
    ("noatime", "atime", MsFlags::MS_NOATIME),
    ("nodiratime", "diratime", MsFlags::MS_NODIRATIME),
    ("relatime", "norelatime", MsFlags::MS_RELATIME),
    // MS_NOSYMFOLLOW, since Linux 5.10.
    ("nosymfollow", "symfollow", MsFlags::from_bits_retain(256)),
    ("sync", "async", MsFlags::MS_SYNCHRONOUS),
    ("dirsync", "", MsFlags::MS_DIRSYNC),
    ("strictatime", "nostrictatime", MsFlags::MS_STRICTATIME),
    ("lazytime", "nolazytime", MsFlags::MS_LAZYTIME),
    ("mand", "nomand", MsFlags::MS_MANDLOCK),
    ("silent", "loud", MsFlags::MS_SILENT),
    ("iversion", "noiversion", MsFlags::MS_I_VERSION),
];
const OF_ONE_MOUNT: usize = 8;

fn translate(filesystem: Filesystem, options: &MountFlags, selinux: bool) -> (MsFlags, String) {
    let mut flags = MsFlags::empty();
    let mut data: Vec<&str> = filesystem::default_mount_options(filesystem).to_vec();
    for option in options.iter() {
        let flag = FLAGS.iter().find(|(on, off, _)| [*on, *off].contains(&option));
        match flag {
            Some((on, _, flag)) => flags.set(*flag, option == *on),
            // As mount(8) does: kernels without SELinux reject labels.
            None if MountFlags::is_label(option) && !selinux => {}
            None => data.push(option),
        }
    }
    (flags, data.join(","))
}

/// Whether the kernel has a policy of SELinux. Without one, the process has no label that contains colons.
fn enforces_labels(proc: &Path) -> bool {
    let contains =
        |file: &str, text: &str| fs::read_to_string(proc.join(file)).is_ok_and(|content| content.contains(text));
    contains("filesystems", "selinuxfs") && contains("self/attr/current", ":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::HostError;
    use crate::linux::device::{DeviceNumber, number_of};
    use crate::linux::fake::disk;

    #[test]
    fn options_are_split_between_the_kernel_and_the_filesystem() {
        let flags = "noatime,nodev,discard,dev,x-y=z,ro,nosymfollow,uquota,context=\"a:b:c:s0:c1,c2\"";
        let flags = MountFlags::new([flags.to_owned()]).unwrap();
        let (bits, data) = translate(Filesystem::Xfs, &flags, false);
        let nosymfollow = MsFlags::from_bits_retain(256);
        let expected = MsFlags::MS_NOATIME | MsFlags::MS_RDONLY | nosymfollow;
        assert_eq!(bits, expected);
        assert_eq!(data, "nouuid,discard,uquota");
        let (_, data) = translate(Filesystem::Xfs, &flags, true);
        assert_eq!(data, "nouuid,discard,uquota,context=\"a:b:c:s0:c1,c2\"");
    }

    #[test]
    fn labels_require_a_policy_of_selinux() {
        for (filesystems, label, expected) in [
            ("nodev\tselinuxfs\n", "system_u:system_r:container_t:s0\0", true),
            ("nodev\tselinuxfs\n", "kernel\0", false),
            ("\text4\n", "cri-containerd.apparmor.d (enforce)\n", false),
        ] {
            let proc = tempfile::tempdir().unwrap();
            fs::create_dir_all(proc.path().join("self/attr")).unwrap();
            fs::write(proc.path().join("filesystems"), filesystems).unwrap();
            fs::write(proc.path().join("self/attr/current"), label).unwrap();
            assert_eq!(enforces_labels(proc.path()), expected, "{label}");
        }
    }

    /// A device whose node has another number than the one that was chosen; none where this machine
    /// has no block device.
    fn replaced() -> Option<Device> {
        let nodes = fs::read_dir("/dev").unwrap().flatten();
        let path = nodes.map(|node| node.path()).find(|path| number_of(path).is_ok());
        let Some(path) = path else {
            let why = "SKIPPED: the re-check before a mount, because /dev has no block device";
            assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{why}");
            eprintln!("{why}");
            return None;
        };
        let now = number_of(&path).unwrap();
        let number = DeviceNumber {
            minor: now.minor + 1,
            ..now
        };
        Some(Device {
            path,
            number,
            ..disk("chosen", 0, "")
        })
    }

    /// The target does not exist, so that nothing is mounted even where the check is missing.
    #[test]
    fn a_replaced_device_is_neither_mounted_nor_bound() {
        let Some(device) = replaced() else { return };
        let request = MountRequest {
            target: "/nowhere/at/all".into(),
            filesystem: Filesystem::Ext4,
            flags: MountFlags::default(),
            read_only: true,
        };
        for refused in [
            mount_device(Path::new("/proc"), &device, &request),
            bind_device(&device, &request.target),
        ] {
            assert!(matches!(refused, Err(HostError::DeviceChanged { .. })), "{refused:?}");
        }
    }

    #[test]
    fn a_regular_file_is_not_a_device() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = number_of(file.path()).unwrap_err();
        assert!(
            crate::base::error_chain(&error).ends_with("it is not a block device"),
            "{error}"
        );
    }
}
