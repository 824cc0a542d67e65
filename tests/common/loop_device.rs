//! Loop devices that stand for disks.

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
