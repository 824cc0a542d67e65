//! Searches for the device of one disk. Of other devices, only names, incarnations and serials are read.

use std::fs;
use std::io::ErrorKind::{InvalidInput, NotADirectory, NotFound};
use std::path::{Path, PathBuf};

use super::device::{Device, DeviceReader, backing_file};
use super::device_sequence::DeviceSequence;
use super::entry::{Entry, entry};
use super::error::{IoResult, Result};
use super::serial::SerialState;
use super::sysfs::{block_dir, is_virtual, names};
use crate::model::Serial;

/// The names of udev's links before the serial, by transport.
const LINK_PREFIXES: [&str; 2] = ["virtio-", "nvme-Alibaba_Cloud_Elastic_Block_Storage_"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub path: PathBuf,
    pub target: PathBuf,
}

impl Link {
    /// The link at this path; `None` if there is none, or another file.
    fn read(path: &Path) -> Result<Option<Self>> {
        let target = fs::read_link(path)
            // InvalidInput: not a symlink.
            .none_if(&[NotFound, NotADirectory, InvalidInput])
            .io_context("read the link", path)?;
        Ok(target.map(|target| Self {
            path: path.to_owned(),
            target,
        }))
    }

    /// The name of the device that it leads to. The directory of the target is ignored.
    pub fn target_name(&self) -> Option<&str> {
        self.target.file_name()?.to_str()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Candidates {
    /// The devices that report the serial or that a link leads to, and the others with the same backing file.
    pub devices: Vec<Device>,
    /// udev's links with the serial. They are read only if no device reports the serial.
    pub by_id: Vec<Link>,
    pub device_dir_link: Option<Link>,
    /// Names of those of the devices whose node is missing or belongs to another device.
    pub without_node: Vec<String>,
    /// Names of devices that have not reported their serials. Each may be the disk.
    pub pending: Vec<String>,
}

pub(super) fn search(reader: &DeviceReader, serial: &Serial, directory: Option<&Path>) -> Result<Candidates> {
    let block = block_dir(&reader.roots.sys)?;
    let all = names(&block)?;
    let mut wanted: Vec<&str> = Vec::new();
    let mut candidates = Candidates::default();
    for name in all.iter().filter(|name| !is_virtual(name)) {
        let sequence = DeviceSequence::read(&block.join(name), name)?;
        match reader.serials.state(name, sequence) {
            SerialState::Known(reported) if reported == *serial => wanted.push(name),
            SerialState::Pending => candidates.pending.push(name.clone()),
            SerialState::Known(_) | SerialState::None => {}
        }
    }
    if wanted.is_empty() {
        let by_id = reader.roots.dev.join("disk/by-id");
        for prefix in LINK_PREFIXES {
            let link = Link::read(&by_id.join(format!("{prefix}{serial}")))?;
            candidates.by_id.extend(link);
        }
    }
    if let Some(directory) = directory {
        candidates.device_dir_link = Link::read(&directory.join(serial.as_str()))?;
    }
    let links = candidates.by_id.iter().chain(&candidates.device_dir_link);
    wanted.extend(links.filter_map(Link::target_name));
    let linked = candidates.device_dir_link.as_ref();
    let file = match linked.and_then(Link::target_name) {
        Some(name) => backing_file(&block.join(name))?,
        None => None,
    };
    if file.is_some() {
        for name in all.iter().filter(|name| name.starts_with("loop")) {
            if backing_file(&block.join(name))? == file {
                wanted.push(name);
            }
        }
    }
    wanted.sort_unstable();
    wanted.dedup();
    for name in wanted {
        candidates.devices.extend(reader.read(name)?);
    }
    for device in &candidates.devices {
        if entry(&device.path)? != Entry::BlockDevice(device.number) {
            candidates.without_node.push(device.name.clone());
        }
    }
    Ok(candidates)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::linux::Roots;
    use crate::linux::fake::write_file;
    use crate::linux::serial::Serials;

    struct Machine {
        dir: tempfile::TempDir,
    }

    impl Machine {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("dev/disk/by-id")).unwrap();
            fs::create_dir_all(dir.path().join("links")).unwrap();
            fs::create_dir_all(dir.path().join("sys/block")).unwrap();
            Self { dir }
        }

        fn file(&self, path: &str, text: &str) {
            write_file(self.dir.path(), path, text);
        }

        fn disk(&self, name: &str, number: &str, sequence: u64) {
            self.file(&format!("sys/block/{name}/dev"), number);
            let path = format!("sys/block/{name}/diskseq");
            self.file(&path, &sequence.to_string());
        }

        fn virtio(&self, name: &str, number: &str, sequence: u64, serial: &str) {
            self.disk(name, number, sequence);
            self.file(&format!("sys/block/{name}/serial"), serial);
        }

        fn link(&self, path: &str, target: &str) {
            symlink(target, self.dir.path().join(path)).unwrap();
        }

        fn try_search(&self, serial: &str) -> Result<Candidates> {
            let path = |name| self.dir.path().join(name);
            let [sys, proc, dev] = ["sys", "proc", "dev"].map(path);
            let serials = Serials::of(&sys);
            let roots = Roots { sys, proc, dev };
            let reader = DeviceReader { roots, serials };
            let serial = Serial::new(serial).unwrap();
            search(&reader, &serial, Some(&path("links")))
        }

        fn search(&self, serial: &str) -> Candidates {
            self.try_search(serial).unwrap()
        }
    }

    fn names_of(candidates: &Candidates) -> Vec<&str> {
        let devices = candidates.devices.iter();
        devices.map(|device| device.name.as_str()).collect()
    }

    #[test]
    fn all_devices_with_the_serial_are_found_and_no_others() {
        let machine = Machine::new();
        machine.virtio("vda", "254:0", 1, "system");
        machine.virtio("vdb", "254:16", 2, "bp1");
        machine.virtio("vdc", "254:32", 3, "bp1");
        machine.disk("vdd", "254:48", 4);
        for name in ["nvme1n1", "nvme1n2"] {
            machine.disk(name, "259:1", 5);
            machine.file(&format!("sys/block/{name}/device/serial"), "bp2    \n");
        }
        assert_eq!(names_of(&machine.search("bp1")), ["vdb", "vdc"]);
        // Two namespaces of one controller have its serial.
        assert_eq!(names_of(&machine.search("bp2")), ["nvme1n1", "nvme1n2"]);
        assert_eq!(machine.search("bp3"), Candidates::default());
    }

    #[test]
    fn a_missing_block_directory_is_an_error_and_not_the_absence_of_the_disk() {
        let machine = Machine::new();
        fs::remove_dir(machine.dir.path().join("sys/block")).unwrap();
        let error = machine.try_search("bp1").unwrap_err();
        assert_eq!(error.io_kind(), Some(std::io::ErrorKind::NotFound));
    }

    #[test]
    fn the_hidden_paths_of_a_multipath_device_are_not_devices() {
        let machine = Machine::new();
        machine.disk("nvme0n1", "259:0", 1);
        machine.file("sys/block/nvme0n1/device/serial", "bp1");
        for path in ["nvme0c0n1", "nvme0c1n1"] {
            machine.file(&format!("sys/block/{path}/hidden"), "1\n");
            machine.file(&format!("sys/block/{path}/device/serial"), "bp1");
        }
        assert_eq!(names_of(&machine.search("bp1")), ["nvme0n1"]);
    }

    #[test]
    fn a_device_that_reports_the_beginning_of_a_longer_serial_is_another_disk() {
        let machine = Machine::new();
        machine.virtio("vdb", "254:16", 2, "bp18um4r4f2fve24k7qz");
        let candidates = machine.search("bp18um4r4f2fve24k7qz1");
        assert_eq!(candidates, Candidates::default());
    }

    #[test]
    fn a_reused_name_has_the_serial_of_the_new_disk() {
        let machine = Machine::new();
        machine.virtio("vdb", "254:16", 2, "bp1");
        assert_eq!(names_of(&machine.search("bp1")), ["vdb"]);
        machine.virtio("vdb", "254:16", 3, "bp2");
        assert_eq!(machine.search("bp1"), Candidates::default());
        assert_eq!(names_of(&machine.search("bp2")), ["vdb"]);
    }

    #[test]
    fn links_are_read_if_no_device_reports_the_serial() {
        let machine = Machine::new();
        machine.virtio("vdb", "254:16", 2, "bp2");
        machine.link("dev/disk/by-id/virtio-bp1", "../../vdb");
        let nvme = "dev/disk/by-id/nvme-Alibaba_Cloud_Elastic_Block_Storage_bp1";
        machine.link(nvme, "../../nvme1n1");
        let candidates = machine.search("bp1");
        let targets: Vec<_> = candidates.by_id.iter().map(Link::target_name).collect();
        assert_eq!(targets, [Some("vdb"), Some("nvme1n1")]);
        assert_eq!(names_of(&candidates), ["vdb"]);
        machine.virtio("vdb", "254:16", 3, "bp1");
        assert_eq!(machine.search("bp1").by_id, []);
    }

    #[test]
    fn all_loop_devices_of_the_linked_file_are_found() {
        let machine = Machine::new();
        for (name, file) in [("loop3", "bp1"), ("loop4", "bp1"), ("loop5", "bp2")] {
            machine.disk(name, "7:3", 1);
            let path = format!("sys/block/{name}/loop/backing_file");
            machine.file(&path, &format!("/images/{file}.img\n"));
        }
        machine.link("links/bp1", "/dev/loop4");
        let candidates = machine.search("bp1");
        assert_eq!(names_of(&candidates), ["loop3", "loop4"]);
    }

    #[test]
    fn a_device_whose_node_is_missing_is_named() {
        let machine = Machine::new();
        machine.virtio("vdb", "254:16", 2, "bp1");
        assert_eq!(machine.search("bp1").without_node, ["vdb"]);
    }
}
