//! Loop devices as stand-ins for disks.

use std::path::{Path, PathBuf};

/// The shell command that sets up a loop device for a file and prints its path. It resets the read-only flag, which a
/// loop device keeps from its last use.
///
/// losetup determines a free device and then opens it exclusively. Two at the same time may choose the same device, and
/// the slower one makes the other's mkfs fail with EBUSY. Each losetup that searches for a device therefore holds the
/// lock of `/dev`.
pub(crate) fn attach_command(image: &Path) -> String {
    let image = image.display();
    format!("d=$(flock /dev losetup -f --show {image}); blockdev --setrw $d; echo $d")
}

/// The shell command that detaches a loop device and waits until the device is free: a process that has it open for a
/// moment, such as a test that scans devices in parallel, delays that, and a new attachment would result in two devices
/// for the file. Another process may use the free device at once.
pub(crate) fn detach_command(device: &str) -> String {
    let name = device.trim_start_matches("/dev/");
    format!(
        "file() {{ cat /sys/block/{name}/loop/backing_file 2>/dev/null || true; }}
         before=$(file); losetup -d {device}; for _ in $(seq 300); do
            [ \"$(file)\" = \"$before\" ] || exit 0; sleep 0.1; done
         echo {device} is still in use; exit 1"
    )
}

/// The file of a loop device.
pub(crate) fn backing_file(device: &Path) -> Option<PathBuf> {
    attribute(device, "loop/backing_file").map(PathBuf::from)
}

/// An attribute of a block device in sysfs.
pub(crate) fn attribute(device: &Path, name: &str) -> Option<String> {
    let device = device.file_name()?.to_str()?;
    let text = std::fs::read_to_string(format!("/sys/block/{device}/{name}")).ok()?;
    Some(text.trim_end().to_owned())
}
