//! What must hold at every instant, read off the kernel and the images.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::disk::{Disk, backing_file};

/// Disks whose content is known. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Known>>);

/// By serial: the disk and the UUID of its filesystem.
type Known = BTreeMap<String, (Disk, [u8; 16])>;

impl Ledger {
    /// From now on the disk has something to lose.
    pub(crate) fn note(&self, disk: &Disk) {
        if let Some(uuid) = disk.uuid() {
            let mut all = self.0.lock().unwrap();
            let before = all.insert(disk.serial.clone(), (disk.clone(), uuid));
            if let Some((_, before)) = before {
                assert_eq!(before, uuid, "{} was formatted again", disk.serial);
            }
        }
    }

    /// The disk is about to be deleted.
    pub(crate) fn forget(&self, disk: &Disk) {
        self.0.lock().unwrap().remove(&disk.serial);
    }

    /// Disks that were formatted a second time.
    fn formatted_again(&self) -> Vec<String> {
        let all = self.0.lock().unwrap();
        let again = all
            .values()
            .filter(|(disk, uuid)| disk.uuid() != Some(*uuid));
        again
            .map(|(disk, _)| format!("{} was formatted again", disk.serial))
            .collect()
    }
}

/// One line of the mount table.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) root: String,
    pub(crate) point: PathBuf,
    kind: String,
    source: String,
}

/// The mounts below a directory.
pub(crate) fn mounts(below: &Path) -> Vec<Line> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = |line: &str| {
        let (left, right) = line.split_once(" - ").unwrap();
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        Line {
            root: left[3].to_owned(),
            point: PathBuf::from(left[4]),
            kind: right[0].to_owned(),
            source: right[1].to_owned(),
        }
    };
    let all = table.lines().map(line);
    all.filter(|line| line.point.starts_with(below)).collect()
}

/// What is wrong below a lane's home at this instant.
pub(crate) fn wrongs(home: &Path, ledger: &Ledger) -> Vec<String> {
    let mut wrongs = ledger.formatted_again();
    let mut points = BTreeSet::new();
    for line in mounts(&home.join("kubelet")) {
        if !points.insert(line.point.clone()) {
            wrongs.push(format!("{} is mounted twice", line.point.display()));
        }
        // The node of a device is a file of /dev; a filesystem names its device as its source.
        let device = match line.kind.as_str() {
            "devtmpfs" | "tmpfs" => format!("/dev{}", line.root),
            _ => line.source.clone(),
        };
        let serial = line.point.parent().and_then(Path::file_name).unwrap();
        let image = home.join("disks").join(serial).with_extension("img");
        let behind = backing_file(Path::new(&device));
        if behind.as_deref() != Some(image.as_path()) {
            wrongs.push(format!("{line:?} shows {behind:?}"));
        }
    }
    wrongs
}
