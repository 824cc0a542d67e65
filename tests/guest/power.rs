//! Hard power-off of a guest.

use std::sync::Mutex;

use nix::sys::signal::Signal;

use super::machine::{BOOT_TIMEOUT, CSI, Guest, PORTS, SHELL, StartFrom, forwarded, launch};
use super::saved::{self, Root};
use crate::common::wait::until;

impl Guest {
    /// Powers the guest off and boots it again without its disks. It loses everything that is not on disks of the test.
    pub(crate) async fn power_cycle(&mut self) {
        self.qemu.signal(Signal::SIGKILL);
        until("QEMU is killed", BOOT_TIMEOUT, async || {
            self.qemu.is_over().then_some(())
        })
        .await;
        // Otherwise the test connects to the socket of the killed process.
        std::fs::remove_file(self.file("qmp")).expect("a file of QEMU");
        std::fs::remove_file(self.file("console")).expect("a file of QEMU");
        let saved = saved::state().await;
        let saved = saved.expect("the guest was restored from it");
        let root = Root::new(saved.path.parent().expect("a file in a directory"), "");
        (self.qemu, self.qmp) = launch(&self.home, &StartFrom::Boot(&root)).await;
        let forwards = self.qmp.monitor("info usernet").await;
        self.csi = forwarded(&forwards, CSI);
        self.shell = forwarded(&forwards, SHELL);
        self.ports = Mutex::new((0..PORTS).rev().collect());
        self.wait_booted().await;
    }
}
