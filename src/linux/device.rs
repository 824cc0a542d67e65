//! Reads block devices from sysfs.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use nix::sys::stat::{major, minor};

use super::device_sequence::{DeviceIncarnation, DeviceSequence};
use super::error::{HostError, IoResult, Result};
use super::serial::{SerialState, Serials};
use super::sysfs::{attribute, block_dir, is_virtual, names, parsed_attribute};
use crate::model::{Bytes, Serial};

/// Unit of sizes in sysfs, in bytes, regardless of the device's logical block size.
const SECTOR: u64 = 512;

/// A device number, `major:minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    pub major: u64,
    pub minor: u64,
}

impl DeviceNumber {
    /// From a `dev_t` of stat(2).
    pub(super) fn from_raw(id: u64) -> Self {
        Self {
            major: major(id),
            minor: minor(id),
        }
    }

    /// The number of a block device node; `None` for other files.
    pub(super) fn of_node(metadata: &fs::Metadata) -> Option<Self> {
        let is_device = metadata.file_type().is_block_device();
        is_device.then(|| Self::from_raw(metadata.rdev()))
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let (major, minor) = text.trim().split_once(':').ok_or(())?;
        Ok(Self {
            major: major.parse().map_err(|_| ())?,
            minor: minor.parse().map_err(|_| ())?,
        })
    }
}

/// A whole block device at the time it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The kernel's name, such as `vdb`.
    pub name: String,
    /// The device node, such as `/dev/vdb`.
    pub path: PathBuf,
    pub number: DeviceNumber,
    /// Distinguishes the incarnations of a device name.
    pub sequence: Option<DeviceSequence>,
    /// The capacity; 0 while it is being set up.
    pub size: Bytes,
    pub serial: Option<Serial>,
    /// The model that an NVMe controller reports.
    pub model: Option<String>,
    /// Whether the disk has not responded to the request for its serial. Without a serial, it may be any disk.
    pub serial_pending: bool,
    pub backing_file: Option<PathBuf>,
    /// Whether the kernel rejects writes (`ro`).
    pub read_only: bool,
    pub partitions: Vec<Partition>,
    /// Names of the devices on top of it (device mapper, RAID).
    pub holders: Vec<String>,
    pub partition_of: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The kernel's name, such as `vdb1`.
    pub name: String,
    /// The number in the partition table, from 1.
    pub index: u32,
    pub number: DeviceNumber,
    pub start: Bytes,
    pub size: Bytes,
    pub holders: Vec<String>,
}

/// A DOS partition table has 32-bit sector numbers.
const DOS_LIMIT: u64 = (1 << 32) * SECTOR;

impl Partition {
    /// The space between its end and that of the device, if this is the last partition.
    pub fn room(&self, device: &Device) -> Bytes {
        Bytes(device.size.0.saturating_sub(self.end()))
    }

    /// Whether it ends at the last sector that a DOS partition table can address. A GPT keeps the last sectors of a
    /// disk for its backup, so that no partition of a disk of 2 TiB ends there.
    pub fn is_at_dos_limit(&self) -> bool {
        (DOS_LIMIT - 2 * SECTOR..=DOS_LIMIT).contains(&self.end())
    }

    fn end(&self) -> u64 {
        self.start.0.saturating_add(self.size.0)
    }
}

impl Device {
    /// The serial of a loop device that the fake cloud uses as a disk: the stem of the name of its backing file.
    pub fn backing_serial(&self) -> Option<&str> {
        self.backing_file.as_deref()?.file_stem()?.to_str()
    }

    pub fn whole_name(&self) -> &str {
        self.partition_of.as_deref().unwrap_or(&self.name)
    }

    /// The partition as a device: with the serial and the incarnation of the whole device.
    pub fn as_partition(&self, partition: &Partition) -> Self {
        Self {
            name: partition.name.clone(),
            path: self.path.with_file_name(&partition.name),
            number: partition.number,
            size: partition.size,
            partitions: Vec::new(),
            holders: partition.holders.clone(),
            partition_of: Some(self.name.clone()),
            ..self.clone()
        }
    }

    /// Whether the device is of a kind that is never a cloud disk, such as device mapper, RAID or RAM. Only the fake
    /// cloud uses loop devices as disks.
    pub fn is_virtual(&self) -> bool {
        is_virtual(&self.name)
    }

    /// Whether both are the same incarnation of the same device.
    pub fn is_same_incarnation(&self, other: &Self) -> bool {
        self.name == other.name
            && self.number == other.number
            && self.sequence == other.sequence
            && self.serial == other.serial
            && self.backing_file == other.backing_file
    }

    /// The incarnation of the device; `None` for a virtual device on a kernel without `diskseq`.
    pub fn incarnation(&self, boot: &str) -> Option<DeviceIncarnation> {
        Some(DeviceIncarnation {
            boot: boot.to_owned(),
            name: self.name.clone(),
            number: self.number.to_string(),
            sequence: self.sequence?,
        })
    }

    /// The property that identifies the device, for messages.
    pub fn identity(&self) -> String {
        match (&self.serial, &self.backing_file) {
            (Some(serial), _) => format!("serial {serial}"),
            (None, Some(file)) => format!("backing file {}", file.display()),
            (None, None) if self.serial_pending => "an unknown serial".to_owned(),
            (None, None) => "no serial".to_owned(),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path.display(), self.number)
    }
}

/// Number of attempts to read a device whose name is reused during the read.
const ATTEMPTS: usize = 3;

#[derive(Debug, Clone)]
pub struct Roots {
    pub sys: PathBuf,
    pub proc: PathBuf,
    pub dev: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        let [sys, proc, dev] = ["/sys", "/proc", "/dev"].map(PathBuf::from);
        Self { sys, proc, dev }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct DeviceReader {
    pub(super) roots: Roots,
    pub(super) serials: Serials,
}

impl DeviceReader {
    /// All whole block devices. A device that is removed during the scan is omitted.
    pub(super) fn scan(&self) -> Result<Vec<Device>> {
        let mut devices = Vec::new();
        for name in names(&block_dir(&self.roots.sys)?)? {
            devices.extend(self.read(&name)?);
        }
        Ok(devices)
    }

    /// The device with this name, if it exists. All attributes belong to one incarnation: a name can be reused for
    /// another disk between two reads.
    pub(super) fn read(&self, name: &str) -> Result<Option<Device>> {
        let dir = block_dir(&self.roots.sys)?.join(name);
        for _ in 0..ATTEMPTS {
            let Some(device) = self.read_once(&dir, name)? else {
                return Ok(None);
            };
            if DeviceSequence::read(&dir, name)? == device.sequence {
                return Ok(Some(device));
            }
        }
        // The device is added and removed repeatedly; callers that wait for it retry.
        Ok(None)
    }

    fn read_once(&self, dir: &Path, name: &str) -> Result<Option<Device>> {
        // A path of an NVMe multipath device; the multipath device is listed separately.
        let hidden = attribute(&dir.join("hidden"))?.is_some_and(|text| text == "1");
        let number = parsed_attribute(&dir.join("dev"))?;
        let Some(number) = number.filter(|_| !hidden) else {
            return Ok(None);
        };
        let sequence = DeviceSequence::read(dir, name)?;
        let serial = self.serials.state(name, sequence);
        Ok(Some(Device {
            name: name.to_owned(),
            path: self.roots.dev.join(name),
            number,
            sequence,
            size: bytes_attribute(&dir.join("size"))?,
            serial_pending: serial == SerialState::Pending,
            serial: serial.known(),
            model: match name.starts_with("nvme") {
                true => attribute(&dir.join("device/model"))?,
                false => None,
            },
            backing_file: backing_file(dir)?,
            read_only: attribute(&dir.join("ro"))?.is_some_and(|text| text == "1"),
            partitions: partitions(dir, name)?,
            holders: names(&dir.join("holders"))?,
            partition_of: None,
        }))
    }
}

fn partitions(dir: &Path, name: &str) -> Result<Vec<Partition>> {
    let mut partitions = Vec::new();
    // Names of partitions start with the name of the disk.
    let mut entries = names(dir)?;
    entries.retain(|entry| entry.starts_with(name));
    for name in entries {
        let dir = dir.join(&name);
        let index: Option<u32> = parsed_attribute(&dir.join("partition"))?;
        // A partition that is removed meanwhile is omitted.
        let (Some(index), Some(number)) = (index, parsed_attribute(&dir.join("dev"))?) else {
            continue;
        };
        partitions.push(Partition {
            name,
            index,
            number,
            start: bytes_attribute(&dir.join("start"))?,
            size: bytes_attribute(&dir.join("size"))?,
            holders: names(&dir.join("holders"))?,
        });
    }
    Ok(partitions)
}

/// The backing file of a loop device; `None` for other devices.
pub(super) fn backing_file(dir: &Path) -> Result<Option<PathBuf>> {
    Ok(attribute(&dir.join("loop/backing_file"))?.map(PathBuf::from))
}

/// A number of sectors; 0 if the attribute does not exist.
fn bytes_attribute(path: &Path) -> Result<Bytes> {
    Ok(sectors(parsed_attribute(path)?.unwrap_or(0)))
}

pub(super) fn sectors(count: u64) -> Bytes {
    Bytes(count.saturating_mul(SECTOR))
}

pub(super) fn number_of(path: &Path) -> Result<DeviceNumber> {
    let metadata = fs::symlink_metadata(path).io_context("stat", path)?;
    DeviceNumber::of_node(&metadata)
        .ok_or_else(|| io::Error::other("it is not a block device"))
        .io_context("use", path)
}

pub(super) fn check_number(device: &Device) -> Result<()> {
    let now = number_of(&device.path)?;
    if now == device.number {
        return Ok(());
    }
    Err(HostError::DeviceChanged {
        device: device.path.clone(),
        reason: format!("its node is {now}, the chosen disk is {}", device.number),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::fake::{disk, write_file as file};

    fn reader(sys: &Path) -> DeviceReader {
        DeviceReader {
            roots: Roots {
                sys: sys.to_owned(),
                ..Roots::default()
            },
            serials: Serials::of(sys),
        }
    }

    #[test]
    fn a_virtio_disk_has_serial_partitions_and_holders() {
        let sys = tempfile::tempdir().unwrap();
        file(sys.path(), "block/vdb/dev", "254:16\n");
        file(sys.path(), "block/vdb/size", "41943040\n");
        file(sys.path(), "block/vdb/serial", "bp18um4r4f2fve24k7qz");
        file(sys.path(), "block/vdb/diskseq", "9\n");
        file(sys.path(), "block/vdb/vdb1/partition", "1\n");
        file(sys.path(), "block/vdb/vdb1/dev", "254:17\n");
        file(sys.path(), "block/vdb/vdb1/start", "2048\n");
        file(sys.path(), "block/vdb/vdb1/size", "41938944\n");
        file(sys.path(), "block/vdb/holders/dm-0/dev", "253:0\n");
        let devices = reader(sys.path()).scan().unwrap();
        assert_eq!(
            devices,
            [Device {
                sequence: Some(DeviceSequence::Diskseq(9)),
                size: Bytes(20 << 30),
                partitions: vec![Partition {
                    name: "vdb1".to_owned(),
                    index: 1,
                    number: DeviceNumber { major: 254, minor: 17 },
                    start: Bytes(1 << 20),
                    size: Bytes((20 << 30) - (2 << 20)),
                    holders: Vec::new(),
                }],
                holders: vec!["dm-0".to_owned()],
                ..disk("vdb", 16, "bp18um4r4f2fve24k7qz")
            }]
        );
    }

    #[test]
    fn an_nvme_serial_is_read_from_the_controller_and_trimmed() {
        let sys = tempfile::tempdir().unwrap();
        file(sys.path(), "block/nvme1n1/dev", "259:1\n");
        file(sys.path(), "block/nvme1n1/device/serial", "bp18um4r4f2fve24k7qz   \n");
        let device = reader(sys.path()).read("nvme1n1");
        let device = device.unwrap().unwrap();
        assert_eq!(device.serial, Serial::new("bp18um4r4f2fve24k7qz"));
        assert_eq!(device.size, Bytes(0));
    }

    #[test]
    fn a_hidden_path_of_an_nvme_device_is_omitted() {
        let sys = tempfile::tempdir().unwrap();
        file(sys.path(), "block/nvme0c0n1/dev", "259:0\n");
        file(sys.path(), "block/nvme0c0n1/hidden", "1\n");
        assert_eq!(reader(sys.path()).scan().unwrap(), []);
    }

    #[test]
    fn a_scan_without_sysfs_fails() {
        let sys = tempfile::tempdir().unwrap();
        let mut reader = DeviceReader::default();
        reader.roots.sys = sys.path().to_owned();
        assert!(reader.scan().is_err());
        fs::create_dir(sys.path().join("block")).unwrap();
        assert_eq!(reader.scan().unwrap(), []);
    }

    #[test]
    fn an_invalid_size_is_an_error_and_a_large_one_does_not_overflow() {
        let sys = tempfile::tempdir().unwrap();
        file(sys.path(), "block/vdb/dev", "254:16\n");
        file(sys.path(), "block/vdb/size", "big\n");
        assert!(reader(sys.path()).scan().is_err());
        file(sys.path(), "block/vdb/size", "18446744073709551615\n");
        let device = reader(sys.path()).read("vdb").unwrap().unwrap();
        assert_eq!(device.size, Bytes(u64::MAX));
        let partition = Partition {
            name: "vdb1".to_owned(),
            index: 1,
            number: device.number,
            start: device.size,
            size: device.size,
            holders: Vec::new(),
        };
        assert_eq!(partition.room(&device), Bytes(0));
    }
}
