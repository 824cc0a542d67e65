//! The parsers of private modules, for the targets in `fuzz/`. Compiled only with `--cfg fuzzing`.

use super::content::{self, Content, DeviceScan};
use super::device;
use super::exec::Output;
use super::mountinfo::{self, Mount};
use super::superblock::Superblocks;
use super::{sysfs, uevent};
use crate::model::Bytes;

pub fn mounts(table: &[u8]) -> Result<Vec<Mount>, String> {
    mountinfo::parse(table)
}

pub fn is_of_disk(uevent: &[u8]) -> bool {
    uevent::is_of_disk(uevent)
}

pub fn superblocks(head: &[u8]) -> Superblocks {
    Superblocks::parse(head)
}

/// The content of a device with this head and, if any byte is not zero, this first one.
pub fn content(probe: &Output, head: &[u8], first_data: Option<u64>) -> Result<Content, String> {
    let superblocks = Superblocks::parse(head);
    content::classify(
        probe,
        &DeviceScan {
            superblocks,
            first_data,
        },
    )
}

/// The selected value of a setting.
pub fn selected(text: &str) -> &str {
    sysfs::selected(text)
}

/// The size of a device with this number of sectors.
pub fn size(sectors: u64) -> Bytes {
    device::sectors(sectors)
}
