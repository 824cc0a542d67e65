//! The node plugin on disks that come and go while the machine runs: a guest of QEMU, whose cloud is
//! the test. Needs QEMU and Debian's packages; `tests/guest/build` makes the guest's root.
//!
//! The calls are those of kubelet; which disk the guest has is the test's doing, by QEMU's control
//! protocol. No name of a device is believed: what is written in the guest is looked for in the disk's
//! image on this side.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "other suites use the rest")]
mod common;

mod boot;
mod disk;
mod machine;
mod node;
mod power;
mod qmp;
mod saved;
mod shell;

mod hotplug;
