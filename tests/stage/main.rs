//! Staging on real block devices: what is made, finished, refused and grown there. Loop devices stand for
//! attached disks, everything else is real. Needs root, losetup, strace and the filesystems' tools.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cut;
mod fsck;
mod grow;
mod kit;
#[path = "../common/loop_device.rs"]
mod loop_device;
mod never_blank;
#[path = "../common/shell.rs"]
mod shell;
