//! Loop devices that stand for disks.

use std::path::Path;

/// What a shell runs to put a file into a free loop device, and print which. The device keeps the access that its last user
/// gave it, which no new disk has.
pub(crate) fn bring(image: &Path) -> String {
    let image = image.display();
    format!("d=$(losetup -f --show {image}); blockdev --setrw $d; echo $d")
}

/// What a shell runs to take a loop device off and wait until it is: whoever has it open for a moment, such as a test
/// beside this one that looks who uses what, keeps it, and its file would be behind two devices when it is attached again.
pub(crate) fn take_off(device: &str) -> String {
    let name = device.trim_start_matches("/dev/");
    format!(
        "losetup -d {device}; for _ in $(seq 300); do
            [ -e /sys/block/{name}/loop/backing_file ] || exit 0; sleep 0.1; done
         echo {device} is still in use; exit 1"
    )
}
