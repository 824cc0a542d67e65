//! Commands that change the partition table of a disk.

use std::path::Path;

use super::exec::Command;

/// Grows partition 1, the only one, to the end of the disk while its filesystem is mounted: first in the table, then in
/// the kernel. sfdisk also moves the backup of a GPT to the end of the disk. It must not inform the kernel, because it
/// would first remove the partition.
#[must_use]
pub fn grow(disk: &Path) -> [Command; 2] {
    [
        Command::new("sfdisk")
            .args(["--quiet", "--no-reread", "--no-tell-kernel", "-N", "1"])
            .arg(disk)
            .with_stdin(", +\n"),
        Command::new("partx").args(["--update", "--nr", "1"]).arg(disk),
    ]
}
