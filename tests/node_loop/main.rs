//! The node on real block devices: loop devices stand for attached disks, everything else is real.
//! Needs root, losetup and the filesystems' tools.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod expand;
mod kit;
mod leave;
mod life;
#[path = "../common/loop_device.rs"]
mod loop_device;
mod mark;
mod publish;
#[path = "../common/shell.rs"]
mod shell;
mod stage;
mod stats;
