//! Invariants of the mount table and the disk images.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::common::loop_device::backing_file;
use crate::common::mounts::mounts;
use crate::kill::disk::Disk;

/// The filesystem UUIDs of formatted disks. Clones share the state.
#[derive(Debug, Clone, Default)]
pub(crate) struct FilesystemUuids(Arc<Mutex<UuidsBySerial>>);

type UuidsBySerial = BTreeMap<String, (Disk, [u8; 16])>;

impl FilesystemUuids {
    /// Records the UUID. The filesystem must not be formatted again.
    pub(crate) fn record(&self, disk: &Disk) {
        if let Some(uuid) = disk.uuid() {
            let mut all = self.0.lock().unwrap();
            let before = all.insert(disk.serial.clone(), (disk.clone(), uuid));
            if let Some((_, before)) = before {
                assert_eq!(before, uuid, "{} was formatted again", disk.serial);
            }
        }
    }

    pub(crate) fn remove(&self, disk: &Disk) {
        self.0.lock().unwrap().remove(&disk.serial);
    }

    fn reformatted_disks(&self) -> Vec<String> {
        let all = self.0.lock().unwrap();
        let changed = all.values().filter(|(disk, uuid)| disk.uuid() != Some(*uuid));
        changed
            .map(|(disk, _)| format!("{} was formatted again", disk.serial))
            .collect()
    }
}

/// Returns the violated invariants below a node's directory.
pub(crate) fn violations(home: &Path, uuids: &FilesystemUuids) -> Vec<String> {
    let mut violations = uuids.reformatted_disks();
    let mut points = BTreeSet::new();
    for line in mounts(&home.join("kubelet")) {
        if !points.insert(line.point.clone()) {
            violations.push(format!("{} is mounted twice", line.point.display()));
        }
        // A device node is a file of devtmpfs; a filesystem has its device as the source.
        let device = match line.kind.as_str() {
            "devtmpfs" | "tmpfs" => format!("/dev{}", line.root),
            _ => line.source.clone(),
        };
        let serial = line.point.parent().and_then(Path::file_name).unwrap();
        let image = home.join("disks").join(serial).with_extension("img");
        let backing = backing_file(Path::new(&device));
        if backing.as_deref() != Some(image.as_path()) {
            violations.push(format!("{line:?} is backed by {backing:?}"));
        }
    }
    violations
}
