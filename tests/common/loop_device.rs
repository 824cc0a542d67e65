//! Loop devices as stand-ins for disks.

use std::path::Path;

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
/// for the file.
pub(crate) fn detach_command(device: &str) -> String {
    let name = device.trim_start_matches("/dev/");
    format!(
        "losetup -d {device}; for _ in $(seq 300); do
            [ -e /sys/block/{name}/loop/backing_file ] || exit 0; sleep 0.1; done
         echo {device} is still in use; exit 1"
    )
}
