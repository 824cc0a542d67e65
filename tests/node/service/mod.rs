//! The Node service on real block devices: loop devices represent attached disks. Requires root, losetup and the
//! filesystem tools.

mod expand;
mod failures;
mod kit;
mod lifecycle;
mod options;
mod publish;
mod stage;
mod stats;
mod unmount;
