//! Simulates the cloud: disks are image files on the host, which are attached to and detached from the running guest,
//! are expanded, fail and hang.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::machine::Guest;

pub(crate) const MIB: u64 = 1 << 20;

/// The smallest unit that filesystems write.
const BLOCK: usize = 4096;

/// errno(3) on Linux.
const EIO: u8 = 5;

/// Requests that [`Kind::VirtioShortQueue`] accepts at a time.
pub(crate) const SHORT_QUEUE: usize = 8;

/// The device type of a disk in the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Virtio,
    /// virtio with a short queue: pending reads block further requests, including the one for the serial.
    VirtioShortQueue,
    Nvme,
}

/// An injected fault of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// All reads and writes fail.
    Errors,
    /// No request completes until the fault is removed.
    Hang,
    /// After one write, no write completes until the fault is removed.
    WriteHang,
    /// Writes are limited to this number of bytes per second.
    SlowWrites(u32),
}

#[derive(Debug, Clone)]
pub(crate) struct Disk {
    pub(crate) serial: String,
    pub(crate) image: PathBuf,
    kind: Kind,
    /// The prefix of its node names and device name in QEMU.
    id: String,
}

/// A disk that is attached to the guest.
#[derive(Debug)]
pub(crate) struct Attached<'a> {
    pub(crate) disk: Disk,
    guest: &'a Guest,
    port: usize,
}

impl Disk {
    pub(crate) fn volume(&self) -> String {
        match self.serial.as_str() {
            "" => format!("d-{}", self.id),
            serial => format!("d-{serial}"),
        }
    }

    /// Expands the image of a detached disk.
    pub(crate) fn grow(&self, size: u64) {
        let image = std::fs::OpenOptions::new().write(true).open(&self.image);
        image.and_then(|image| image.set_len(size)).expect("the image exists");
    }

    /// Whether anything but zeros was written to the disk.
    pub(crate) fn has_content(&self) -> bool {
        let bytes = std::fs::read(&self.image).expect("the image exists");
        bytes.chunks(BLOCK).any(|block| *block != [0; BLOCK])
    }

    /// The number of blocks of the disk that contain this text.
    pub(crate) fn count(&self, text: &str) -> usize {
        let bytes = std::fs::read(&self.image).expect("the image exists");
        let text = text.as_bytes();
        // A short file occupies one block. Most blocks are zeros and are skipped.
        let blocks = bytes.chunks(BLOCK).filter(|block| *block != [0; BLOCK]);
        let here = |block: &&[u8]| block.windows(text.len()).any(|window| window == text);
        blocks.filter(here).count()
    }
}

impl Guest {
    /// Creates a blank disk without attaching it.
    pub(crate) fn disk(&self, kind: Kind, serial: &str, size: u64) -> Disk {
        let mut next = self.next.lock().expect("not poisoned");
        *next += 1;
        let id = format!("disk{next}");
        let image = self.file(&format!("{id}.img"));
        let file = std::fs::File::create_new(&image).expect("a new file");
        file.set_len(size).expect("a sparse file");
        Disk {
            serial: serial.to_owned(),
            image,
            kind,
            id,
        }
    }

    /// Creates and attaches a blank disk.
    pub(crate) async fn attach_new(&self, kind: Kind, serial: &str, size: u64) -> Attached<'_> {
        self.attach(&self.disk(kind, serial, size)).await
    }

    pub(crate) async fn attach(&self, disk: &Disk) -> Attached<'_> {
        self.attach_as(disk, false).await
    }

    /// Attaches the disk read-only.
    pub(crate) async fn attach_read_only(&self, disk: &Disk) -> Attached<'_> {
        self.attach_as(disk, true).await
    }

    async fn attach_as(&self, disk: &Disk, read_only: bool) -> Attached<'_> {
        let Disk { id, serial, .. } = disk;
        let free = self.ports.lock().expect("not poisoned").pop();
        let port = free.expect("a free slot");
        let limits = json!({ "iops-total": 0 });
        let group = json!({ "qom-type": "throttle-group", "id": format!("{id}-group"), "limits": limits });
        self.qmp.run("object-add", group).await;
        let file = json!({ "driver": "file", "node-name": format!("{id}-file"), "filename": disk.image,
                           "read-only": read_only });
        self.qmp.run("blockdev-add", file).await;
        // The injected errors exclude flushes: QEMU flushes when `set_fault` replaces a node of a disk in use.
        let fails = |what| json!({ "event": "none", "iotype": what, "errno": EIO });
        let faults = json!({ "driver": "blkdebug", "node-name": format!("{id}-faults"), "image": format!("{id}-file"),
                             "read-only": read_only, "inject-error": [fails("read"), fails("write")] });
        self.qmp.run("blockdev-add", faults).await;
        self.qmp.run("blockdev-add", top(id, read_only, Fault::None)).await;
        let throttle = json!({ "driver": "throttle", "node-name": id, "file": format!("{id}-raw"),
                               "read-only": read_only, "throttle-group": format!("{id}-group") });
        self.qmp.run("blockdev-add", throttle).await;
        let driver = match disk.kind {
            Kind::Virtio | Kind::VirtioShortQueue => "virtio-blk-pci",
            Kind::Nvme => "nvme",
        };
        let mut device = json!({ "driver": driver, "id": format!("{id}-device"), "bus": format!("port{port}"),
                             "drive": id, "serial": serial });
        if disk.kind == Kind::VirtioShortQueue {
            device["num-queues"] = json!(1);
            device["queue-size"] = json!(SHORT_QUEUE);
        }
        self.qmp.run("device_add", device).await;
        Attached {
            disk: disk.clone(),
            guest: self,
            port,
        }
    }
}

/// The node of QEMU's block graph that selects between the file and its faults.
fn top(id: &str, read_only: bool, fault: Fault) -> Value {
    let below = match fault {
        Fault::Errors => "faults",
        Fault::None | Fault::Hang | Fault::WriteHang | Fault::SlowWrites(_) => "file",
    };
    json!({ "driver": "raw", "node-name": format!("{id}-raw"), "file": format!("{id}-{below}"),
            "read-only": read_only })
}

impl Attached<'_> {
    /// Detaches the disk even if the guest uses it, and waits until the device is deleted.
    pub(crate) async fn detach(self) -> Disk {
        let Disk { id, .. } = &self.disk;
        let qmp = &self.guest.qmp;
        let device = format!("{id}-device");
        qmp.run("device_del", json!({ "id": device })).await;
        qmp.event("DEVICE_DELETED", |data| data["device"] == device.as_str())
            .await;
        for node in ["", "-raw", "-faults", "-file"] {
            qmp.run("blockdev-del", json!({ "node-name": format!("{id}{node}") }))
                .await;
        }
        qmp.run("object-del", json!({ "id": format!("{id}-group") })).await;
        self.guest.ports.lock().expect("not poisoned").push(self.port);
        self.disk
    }

    /// Expands the disk; virtio notifies the guest. QEMU's NVMe device does not support this.
    pub(crate) async fn grow(&self, size: u64) {
        let resize = json!({ "node-name": self.disk.id, "size": size });
        self.guest.qmp.run("block_resize", resize).await;
    }

    /// Replaces the injected fault.
    pub(crate) async fn set_fault(&self, fault: Fault) {
        let Disk { id, .. } = &self.disk;
        let qmp = &self.guest.qmp;
        // A limit of one byte per second blocks all requests; they continue when the limit is removed.
        let (all, writes) = match fault {
            Fault::Hang => (1, 0),
            Fault::WriteHang => (0, 1),
            Fault::SlowWrites(bytes) => (0, bytes),
            Fault::None | Fault::Errors => (0, 0),
        };
        let limits = json!({ "path": format!("/objects/{id}-group"), "property": "limits",
                             "value": { "bps-total": all, "bps-write": writes } });
        qmp.run("qom-set", limits).await;
        qmp.run("blockdev-reopen", json!({ "options": [top(id, false, fault)] }))
            .await;
    }
}
