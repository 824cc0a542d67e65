//! The test as the cloud: disks are files on this side, which come to the guest and leave it while it
//! runs, grow, fail and hang.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::machine::Guest;

pub(crate) const MIB: u64 = 1 << 20;

/// The least that filesystems write.
const BLOCK: usize = 4096;

/// errno(3) on Linux.
const EIO: u8 = 5;

/// Requests that [`Kind::VirtioShortQueue`] accepts at a time.
pub(crate) const SHORT_QUEUE: usize = 8;

/// How the guest sees a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Virtio,
    /// virtio with room for few requests: reads that wait for the disk keep others, also that for the serial, waiting.
    VirtioShortQueue,
    Nvme,
}

/// What a disk does to its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Well,
    /// It fails each read and write.
    Fails,
    /// It answers no more, until it is well again.
    Hangs,
    /// It completes one write, and then none until it is well again.
    WritesHang,
    /// It writes this many bytes a second.
    WritesSlowly(u32),
}

/// A disk of the cloud.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    pub(crate) serial: String,
    pub(crate) image: PathBuf,
    kind: Kind,
    /// What QEMU calls it.
    id: String,
}

/// A disk that the guest has.
#[derive(Debug)]
pub(crate) struct Attached<'a> {
    pub(crate) disk: Disk,
    guest: &'a Guest,
    port: usize,
}

impl Disk {
    /// The volume's id.
    pub(crate) fn volume(&self) -> String {
        match self.serial.as_str() {
            "" => format!("d-{}", self.id),
            serial => format!("d-{serial}"),
        }
    }

    /// Makes it larger while nobody has it.
    pub(crate) fn grow(&self, size: u64) {
        let image = std::fs::OpenOptions::new().write(true).open(&self.image);
        image.and_then(|image| image.set_len(size)).expect("the image is there");
    }

    /// Whether anything but zeros was written to the disk.
    pub(crate) fn has_content(&self) -> bool {
        let bytes = std::fs::read(&self.image).expect("the image is there");
        bytes.chunks(BLOCK).any(|block| *block != [0; BLOCK])
    }

    /// How many blocks of the disk have this text.
    pub(crate) fn count(&self, text: &str) -> usize {
        let bytes = std::fs::read(&self.image).expect("the image is there");
        let text = text.as_bytes();
        // A short file is in one block, and most blocks are zeros.
        let blocks = bytes.chunks(BLOCK).filter(|block| *block != [0; BLOCK]);
        let here = |block: &&[u8]| block.windows(text.len()).any(|window| window == text);
        blocks.filter(here).count()
    }
}

impl Guest {
    /// A new blank disk, not attached.
    pub(crate) fn disk(&self, kind: Kind, serial: &str, size: u64) -> Disk {
        let mut next = self.next.lock().expect("nobody panicked with it");
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

    /// A new blank disk, attached.
    pub(crate) async fn attach_new(&self, kind: Kind, serial: &str, size: u64) -> Attached<'_> {
        self.attach(&self.disk(kind, serial, size)).await
    }

    /// Attaches it.
    pub(crate) async fn attach(&self, disk: &Disk) -> Attached<'_> {
        self.attach_as(disk, false).await
    }

    /// Attaches it to be read only.
    pub(crate) async fn attach_read_only(&self, disk: &Disk) -> Attached<'_> {
        self.attach_as(disk, true).await
    }

    async fn attach_as(&self, disk: &Disk, read_only: bool) -> Attached<'_> {
        let Disk { id, serial, .. } = disk;
        let free = self.ports.lock().expect("nobody panicked with it").pop();
        let port = free.expect("a free slot");
        let limits = json!({ "iops-total": 0 });
        let group = json!({ "qom-type": "throttle-group", "id": format!("{id}-group"), "limits": limits });
        self.qmp.run("object-add", group).await;
        let file = json!({ "driver": "file", "node-name": format!("{id}-file"), "filename": disk.image,
                           "read-only": read_only });
        self.qmp.run("blockdev-add", file).await;
        // What lies between is switched while the disk is in use, for which QEMU must be able to flush.
        let fails = |what| json!({ "event": "none", "iotype": what, "errno": EIO });
        let faults = json!({ "driver": "blkdebug", "node-name": format!("{id}-faults"), "image": format!("{id}-file"),
                             "read-only": read_only, "inject-error": [fails("read"), fails("write")] });
        self.qmp.run("blockdev-add", faults).await;
        self.qmp.run("blockdev-add", top(id, read_only, Mood::Well)).await;
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

/// The node of QEMU's graph by which a disk's mood is switched.
fn top(id: &str, read_only: bool, mood: Mood) -> Value {
    let below = match mood {
        Mood::Fails => "faults",
        Mood::Well | Mood::Hangs | Mood::WritesHang | Mood::WritesSlowly(_) => "file",
    };
    json!({ "driver": "raw", "node-name": format!("{id}-raw"), "file": format!("{id}-{below}"),
            "read-only": read_only })
}

impl Attached<'_> {
    /// Takes it from the guest, whatever the guest does with it, and waits until it is gone.
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
        self.guest
            .ports
            .lock()
            .expect("nobody panicked with it")
            .push(self.port);
        self.disk
    }

    /// Makes it larger, which virtio tells the guest. QEMU's NVMe refuses it.
    pub(crate) async fn grow(&self, size: u64) {
        let resize = json!({ "node-name": self.disk.id, "size": size });
        self.guest.qmp.run("block_resize", resize).await;
    }

    /// How it behaves from now on.
    pub(crate) async fn be(&self, mood: Mood) {
        let Disk { id, .. } = &self.disk;
        let qmp = &self.guest.qmp;
        // Nothing gets through at one byte a second; what waits goes on when the limit is gone.
        let (all, writes) = match mood {
            Mood::Hangs => (1, 0),
            Mood::WritesHang => (0, 1),
            Mood::WritesSlowly(bytes) => (0, bytes),
            Mood::Well | Mood::Fails => (0, 0),
        };
        let limits = json!({ "path": format!("/objects/{id}-group"), "property": "limits",
                             "value": { "bps-total": all, "bps-write": writes } });
        qmp.run("qom-set", limits).await;
        qmp.run("blockdev-reopen", json!({ "options": [top(id, false, mood)] }))
            .await;
    }
}
