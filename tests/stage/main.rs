//! Staging on real block devices: formatting, repeating an interrupted mkfs, rejection of foreign data, and growth.
//! Loop devices represent the attached disks. Requires root, losetup, strace and the filesystem tools.

#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

mod features;
mod fsck;
mod grow;
mod interrupted_mkfs;
mod kit;
#[path = "../common/loop_device.rs"]
mod loop_device;
mod never_blank;
#[path = "../common/shell.rs"]
mod shell;
