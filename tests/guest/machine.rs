//! A guest: QEMU, always emulating, with free slots for disks. Each test has a fresh one, booted once
//! and restored from its saved state.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::qmp::Qmp;
use super::saved::{self, Saved};
use crate::common::process::{Process, Start};
use crate::common::wait::until;

/// Guests at a time: each keeps one processor busy.
pub(super) static SLOTS: Semaphore = Semaphore::const_new(2);

/// Longer than a boot takes on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Slots for disks: PCI bridges, eight to a device.
pub(crate) const PORTS: usize = 24;

/// Ports inside the guest, as its init has them.
pub(super) const CSI: u16 = 7000;
pub(super) const SHELL: u16 = 7001;

/// A running guest. Dropping it ends it, with all that it had.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) qmp: Qmp,
    /// The node plugin's port on this side.
    pub(crate) csi: u16,
    /// The shell's port on this side.
    pub(crate) shell: u16,
    /// Free bridges, and the number of the next disk.
    pub(super) ports: Mutex<Vec<usize>>,
    pub(super) next: Mutex<u32>,
    pub(super) qemu: Process,
    pub(super) home: TempDir,
    pub(super) _slot: Option<SemaphorePermit<'static>>,
}

/// How a guest begins.
#[derive(Debug)]
pub(crate) enum Begin<'a> {
    /// With its kernel and this root.
    Boot(&'a saved::Root),
    /// Where it was saved.
    Restore(&'a Saved),
}

impl Guest {
    /// A fresh guest; none, aloud, where there can be none.
    pub(crate) async fn fresh(test: &str) -> Option<Self> {
        let saved = saved::state(test).await?;
        let slot = SLOTS.acquire().await.expect("never closed");
        let mut guest = Self::start(Begin::Restore(&saved)).await;
        guest._slot = Some(slot);
        until("the guest is restored", PATIENCE, async || {
            let status = guest.qmp.run("query-status", json!({})).await;
            (status["status"] != "inmigrate").then_some(())
        })
        .await;
        guest.qmp.run("cont", json!({})).await;
        guest.sh("true").await;
        Some(guest)
    }

    /// Starts QEMU; the guest need not run yet.
    pub(crate) async fn start(begin: Begin<'_>) -> Self {
        let home = tempfile::tempdir().expect("there is a place for temporary files");
        let (qemu, qmp) = launch(&home, &begin).await;
        let forwards = qmp.monitor("info usernet").await;
        Self {
            csi: forwarded(&forwards, CSI),
            shell: forwarded(&forwards, SHELL),
            ports: Mutex::new((0..PORTS).rev().collect()),
            next: Mutex::new(0),
            qmp,
            qemu,
            home,
            _slot: None,
        }
    }

    /// A file on this side that goes with the guest.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// What kernel and init have printed.
    pub(crate) fn console(&self) -> String {
        std::fs::read_to_string(self.file("console")).unwrap_or_default()
    }

    /// What the node plugin has logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.file("log")).unwrap_or_default()
    }

    /// Fails where QEMU has ended.
    pub(crate) fn check(&mut self) {
        let over = self.qemu.is_over();
        assert!(!over, "QEMU ended: {}", self.qemu.stderr());
    }
}

impl Drop for Guest {
    /// A test that failed shows what the guest printed.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the guest's console:\n{}", self.console());
            eprintln!("the node plugin's log:\n{}", self.log());
        }
    }
}

/// What makes up the machine: the same for a saved state and for what is restored from it.
pub(crate) fn hardware() -> Vec<String> {
    let mut arguments = [
        "-accel",
        "tcg,tb-size=256",
        "-machine",
        "q35",
        "-cpu",
        "max",
        "-smp",
        "2",
        "-m",
        "512",
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-device",
        "virtio-net-pci,netdev=net,romfile=,addr=1.0",
    ]
    .map(str::to_owned)
    .to_vec();
    for port in 0..PORTS {
        let (device, function) = (2 + port / 8, port % 8);
        arguments.push("-device".to_owned());
        arguments.push(format!(
            "pcie-root-port,id=port{port},chassis={},slot={},addr={device:x}.{function},multifunction=on,io-reserve=0",
            port + 1,
            port + 1
        ));
    }
    arguments
}

/// Starts QEMU and connects to it.
pub(super) async fn launch(home: &TempDir, begin: &Begin<'_>) -> (Process, Qmp) {
    let socket = home.path().join("qmp");
    // Also a test process that is killed leaves none behind.
    let mut qemu = Start::of("setpriv")
        .args(["--pdeathsig", "KILL", "--", "qemu-system-x86_64"])
        .args(arguments(home, begin))
        .spawn();
    let qmp = until("QEMU answers", PATIENCE, async || {
        assert!(!qemu.is_over(), "QEMU ended at the start: {}", qemu.stderr());
        Qmp::connect(&socket).await
    })
    .await;
    (qemu, qmp)
}

fn arguments(home: &TempDir, begin: &Begin<'_>) -> Vec<String> {
    let file = |name: &str| home.path().join(name).display().to_string();
    let mut arguments = hardware();
    let forward = |port| format!("hostfwd=tcp:127.0.0.1:0-:{port}");
    arguments.extend([
        "-qmp".to_owned(),
        format!("unix:{},server=on,wait=off", file("qmp")),
        "-serial".to_owned(),
        format!("file:{}", file("console")),
        "-serial".to_owned(),
        format!("file:{}", file("log")),
        "-netdev".to_owned(),
        format!("user,id=net,restrict=on,{},{}", forward(CSI), forward(SHELL)),
    ]);
    match begin {
        Begin::Boot(root) => arguments.extend([
            "-kernel".to_owned(),
            root.kernel.display().to_string(),
            "-initrd".to_owned(),
            root.initrd.display().to_string(),
            "-append".to_owned(),
            format!("console=ttyS0 quiet net.ifnames=0 panic=-1 {}", root.parameters),
        ]),
        Begin::Restore(saved) => {
            arguments.extend(["-incoming".to_owned(), format!("exec:cat '{}'", saved.path.display())]);
        }
    }
    arguments
}

/// The port on this side that leads to this one in the guest. A line is
/// `TCP[HOST_FORWARD]  11       127.0.0.1 38231       10.0.2.15  7000     0     0`.
pub(super) fn forwarded(table: &str, inside: u16) -> u16 {
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let home = Ipv4Addr::LOCALHOST.to_string();
    rows.filter(|row| row.len() > 5 && row[2] == home && row[5] == inside.to_string())
        .find_map(|row| row[3].parse().ok())
        .unwrap_or_else(|| panic!("no forwarding to {inside}: {table}"))
}
