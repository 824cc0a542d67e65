//! The Node service on real block devices: loop devices represent attached disks. Requires root, losetup and the
//! filesystem tools.

#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

mod expand;
#[path = "../common/failure_table.rs"]
mod failure_table;
mod failures;
mod kit;
mod lifecycle;
#[path = "../common/loop_device.rs"]
mod loop_device;
mod options;
mod publish;
#[path = "../common/shell.rs"]
mod shell;
mod stage;
mod stats;
mod unmount;
