//! The node plugin on hot-plugged disks in a QEMU guest. Requires QEMU and Debian packages; `tests/guest/build` creates
//! the guest's root filesystem.
//!
//! The test sends the calls of kubelet, and attaches disks over QEMU's control protocol. It does not rely on device
//! names: it checks what was written in the guest in the image file of the disk.

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
