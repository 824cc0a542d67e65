//! A QEMU guest without hardware virtualization, with free slots for disks. Each test restores a new guest from the
//! saved state of one that has booted.

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

/// Limits parallel guests: each uses one processor.
pub(super) static SLOTS: Semaphore = Semaphore::const_new(2);

/// Timeout of a boot on a busy machine.
pub(super) const BOOT_TIMEOUT: Duration = Duration::from_secs(120);

/// Slots for disks: PCI bridges, eight per device.
pub(crate) const PORTS: usize = 24;

/// TCP ports in the guest, set by its init.
pub(super) const CSI: u16 = 7000;
pub(super) const SHELL: u16 = 7001;

/// A running guest. Dropping it terminates QEMU and deletes its files.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) qmp: Qmp,
    /// The host port that forwards to the node plugin.
    pub(crate) csi: u16,
    /// The host port that forwards to the command agent.
    pub(crate) shell: u16,
    /// Free bridges, and the number of the next disk.
    pub(super) ports: Mutex<Vec<usize>>,
    pub(super) next: Mutex<u32>,
    pub(super) qemu: Process,
    pub(super) home: TempDir,
    pub(super) _slot: Option<SemaphorePermit<'static>>,
}

#[derive(Debug)]
pub(crate) enum StartFrom<'a> {
    Boot(&'a saved::Root),
    Restore(&'a Saved),
}

impl Guest {
    /// Restores a guest; returns none with a message if guests are not supported.
    pub(crate) async fn fresh() -> Option<Self> {
        let saved = saved::state().await?;
        let slot = SLOTS.acquire().await.expect("never closed");
        let mut guest = Self::start(StartFrom::Restore(&saved)).await;
        guest._slot = Some(slot);
        until("the guest is restored", BOOT_TIMEOUT, async || {
            let status = guest.qmp.run("query-status", json!({})).await;
            (status["status"] != "inmigrate").then_some(())
        })
        .await;
        guest.qmp.run("cont", json!({})).await;
        guest.sh("true").await;
        Some(guest)
    }

    /// Starts QEMU; the guest need not run yet.
    pub(crate) async fn start(begin: StartFrom<'_>) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory can be created");
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

    /// The path of a host file that is deleted with the guest.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// The output of the kernel and of init.
    pub(crate) fn console(&self) -> String {
        std::fs::read_to_string(self.file("console")).unwrap_or_default()
    }

    /// The log of the node plugin.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.file("log")).unwrap_or_default()
    }

    /// Panics if QEMU has ended.
    pub(crate) fn check(&mut self) {
        let over = self.qemu.is_over();
        assert!(!over, "QEMU ended: {}", self.qemu.stderr());
    }
}

impl Drop for Guest {
    /// Prints the guest's output if the test failed.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the guest's console:\n{}", self.console());
            eprintln!("the node plugin's log:\n{}", self.log());
        }
    }
}

const HARDWARE: &str = "-accel tcg,tb-size=256 -machine q35 -cpu max -smp 2 -m 512 -nodefaults -no-user-config \
    -display none -device virtio-net-pci,netdev=net,romfile=,addr=1.0";

/// The arguments that define the hardware. A state can be restored only on the hardware it was saved on.
pub(crate) fn hardware() -> Vec<String> {
    let mut arguments: Vec<String> = HARDWARE.split_whitespace().map(str::to_owned).collect();
    for port in 0..PORTS {
        let (device, function) = (2 + port / 8, port % 8);
        arguments.push("-device".to_owned());
        arguments.push(format!(
            "pcie-root-port,id=port{port},chassis={0},slot={0},addr={device:x}.{function},multifunction=on,io-reserve=0",
            port + 1
        ));
    }
    arguments
}

/// Starts QEMU and connects to it.
pub(super) async fn launch(home: &TempDir, begin: &StartFrom<'_>) -> (Process, Qmp) {
    let socket = home.path().join("qmp");
    // The kernel terminates QEMU even if the test process is killed.
    let mut qemu = Start::with_pdeathsig("qemu-system-x86_64")
        .args(arguments(home, begin))
        .spawn();
    let qmp = until("QEMU accepts connections", BOOT_TIMEOUT, async || {
        assert!(!qemu.is_over(), "QEMU ended at the start: {}", qemu.stderr());
        Qmp::connect(&socket).await
    })
    .await;
    (qemu, qmp)
}

fn arguments(home: &TempDir, begin: &StartFrom<'_>) -> Vec<String> {
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
        StartFrom::Boot(root) => arguments.extend([
            "-kernel".to_owned(),
            root.kernel.display().to_string(),
            "-initrd".to_owned(),
            root.initrd.display().to_string(),
            "-append".to_owned(),
            format!("console=ttyS0 quiet net.ifnames=0 panic=-1 {}", root.parameters),
        ]),
        StartFrom::Restore(saved) => {
            arguments.extend(["-incoming".to_owned(), format!("exec:cat '{}'", saved.path.display())]);
        }
    }
    arguments
}

/// The host port that forwards to this port of the guest. A line is
/// `TCP[HOST_FORWARD]  11       127.0.0.1 38231       10.0.2.15  7000     0     0`.
pub(super) fn forwarded(table: &str, inside: u16) -> u16 {
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let home = Ipv4Addr::LOCALHOST.to_string();
    rows.filter(|row| row.len() > 5 && row[2] == home && row[5] == inside.to_string())
        .find_map(|row| row[3].parse().ok())
        .unwrap_or_else(|| panic!("no forwarding to {inside}: {table}"))
}
