//! Block devices, as sysfs tells of them.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::error::{HostError, Result};
use super::serial::Serials;
use crate::model::{Bytes, Serial};

/// Length of the unit in which sysfs counts, whatever the device's own sector is.
const SECTOR: u64 = 512;

/// `major:minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    /// The major number.
    pub major: u64,
    /// The minor number.
    pub minor: u64,
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for Number {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let (major, minor) = text.trim().split_once(':').ok_or(())?;
        Ok(Self {
            major: major.parse().map_err(|_| ())?,
            minor: minor.parse().map_err(|_| ())?,
        })
    }
}

/// A whole block device, at the moment of the scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The kernel's name, such as `vdb`.
    pub name: String,
    /// Its node under the device root.
    pub path: PathBuf,
    /// `major:minor`.
    pub number: Number,
    /// Counts every appearance of a disk on this machine, so that a name that is used again is told
    /// from what had it before. None on kernels before 5.15.
    pub sequence: Option<u64>,
    /// The capacity; 0 while it is being set up.
    pub size: Bytes,
    /// The serial, where the device has one.
    pub serial: Option<Serial>,
    /// The file behind a loop device.
    pub backing_file: Option<PathBuf>,
    /// Whether the kernel refuses to write to it.
    pub read_only: bool,
    /// Names of its partitions.
    pub partitions: Vec<String>,
    /// Names of the devices built on it (device mapper, RAID).
    pub holders: Vec<String>,
}

impl Device {
    /// The recorded mark of a loop device that stands for a cloud disk: its backing file's stem.
    #[must_use]
    pub fn mark(&self) -> Option<&str> {
        self.backing_file.as_deref()?.file_stem()?.to_str()
    }

    /// Whether the kernel has made it up itself: it never stands for a disk of the cloud, but a loop
    /// device with a mark.
    #[must_use]
    pub fn is_made_up(&self) -> bool {
        is_made_up(&self.name)
    }

    /// Whether this is the same appearance of the same device.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
            && self.number == other.number
            && self.sequence == other.sequence
            && self.serial == other.serial
            && self.backing_file == other.backing_file
    }

    /// What it is known by, in words.
    #[must_use]
    pub fn identity(&self) -> String {
        match (&self.serial, &self.backing_file) {
            (Some(serial), _) => format!("serial {serial}"),
            (None, Some(file)) => format!("backing file {}", file.display()),
            (None, None) => "no serial".to_owned(),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path.display(), self.number)
    }
}

/// Whether devices of such a name never have a serial; there may be hundreds of them.
pub(super) fn is_made_up(name: &str) -> bool {
    ["loop", "ram", "zram", "dm-", "md", "nbd", "sr", "fd"]
        .iter()
        .filter_map(|kind| name.strip_prefix(kind))
        .any(|number| number.parse::<u32>().is_ok())
}

/// All whole block devices. One that vanishes during the scan is left out.
pub(super) fn scan(sys: &Path, dev: &Path, serials: &Serials) -> Result<Vec<Device>> {
    let names = names(&block(sys)?)?;
    serials.keep(&names);
    let mut devices = Vec::new();
    for name in &names {
        devices.extend(read(sys, dev, serials, name)?);
    }
    Ok(devices)
}

/// The device of this name; none where no device has it.
pub(super) fn named(
    sys: &Path,
    dev: &Path,
    serials: &Serials,
    name: &str,
) -> Result<Option<Device>> {
    block(sys)?;
    read(sys, dev, serials, name)
}

/// Where sysfs lists devices. Without it nothing proves that a device is gone.
fn block(sys: &Path) -> Result<PathBuf> {
    let block = sys.join("block");
    if block.is_dir() {
        Ok(block)
    } else {
        Err(HostError::io("list", &block, io::ErrorKind::NotFound))
    }
}

/// How often a device is read anew when another one takes its name meanwhile.
const ATTEMPTS: usize = 3;

/// One device by its name; none where there is no such device. What is answered is of one appearance:
/// a name may be given to another disk between two attributes.
pub(super) fn read(
    sys: &Path,
    dev: &Path,
    serials: &Serials,
    name: &str,
) -> Result<Option<Device>> {
    for _ in 0..ATTEMPTS {
        let Some(device) = read_once(sys, dev, serials, name)? else {
            return Ok(None);
        };
        let dir = sys.join("block").join(name);
        if number_attribute(&dir.join("diskseq"))? == device.sequence {
            return Ok(Some(device));
        }
    }
    // It comes and goes; whoever waits for it looks again.
    Ok(None)
}

fn read_once(sys: &Path, dev: &Path, serials: &Serials, name: &str) -> Result<Option<Device>> {
    let dir = sys.join("block").join(name);
    // A path of an NVMe multipath device: the device proper is listed beside it.
    let hidden = attribute(&dir.join("hidden"))?.is_some_and(|text| text == "1");
    let Some(number) = attribute(&dir.join("dev"))?.filter(|_| !hidden) else {
        return Ok(None);
    };
    let number = number
        .parse()
        .map_err(|()| format_error(&dir.join("dev"), &number))?;
    let sequence = number_attribute(&dir.join("diskseq"))?;
    Ok(Some(Device {
        name: name.to_owned(),
        path: dev.join(name),
        number,
        sequence,
        size: Bytes(number_attribute(&dir.join("size"))?.unwrap_or(0) * SECTOR),
        serial: serials.of(&dir, name, sequence)?,
        backing_file: backing_file(&dir)?,
        read_only: attribute(&dir.join("ro"))?.is_some_and(|text| text == "1"),
        partitions: names(&dir)?
            .into_iter()
            // The kernel names a partition after its disk.
            .filter(|entry| entry.starts_with(name) && dir.join(entry).join("partition").exists())
            .collect(),
        holders: names(&dir.join("holders"))?,
    }))
}

/// The file behind a loop device; none of another device.
pub(super) fn backing_file(dir: &Path) -> Result<Option<PathBuf>> {
    Ok(attribute(&dir.join("loop/backing_file"))?.map(PathBuf::from))
}

/// The trimmed text of an attribute; none where there is no such file. An attribute whose device
/// goes away at this moment answers `ENODEV` or `ENXIO`.
pub(super) fn attribute(path: &Path) -> Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(
            String::from_utf8_lossy(&bytes)
                .trim_matches(|c: char| c.is_whitespace() || c == '\0')
                .to_owned(),
        )),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(HostError::io("read", path, error)),
    }
}

pub(super) fn number_attribute(path: &Path) -> Result<Option<u64>> {
    attribute(path)?
        .map(|text| text.parse().map_err(|_| format_error(path, &text)))
        .transpose()
}

/// Names in a directory; none where there is no such directory.
pub(super) fn names(dir: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if is_gone(&error) => return Ok(Vec::new()),
        Err(error) => return Err(HostError::io("list", dir, error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| HostError::io("list", dir, error))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

fn is_gone(error: &io::Error) -> bool {
    const ENODEV: i32 = nix::errno::Errno::ENODEV as i32;
    const ENXIO: i32 = nix::errno::Errno::ENXIO as i32;
    error.kind() == io::ErrorKind::NotFound || matches!(error.raw_os_error(), Some(ENODEV | ENXIO))
}

fn format_error(path: &Path, text: &str) -> HostError {
    HostError::Format {
        path: path.to_owned(),
        reason: format!("{text:?} is not what the kernel documents"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dir: &Path, path: &str, text: &str) {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_virtio_disk_is_read_with_its_serial_partitions_and_holders() {
        let sys = tempfile::tempdir().unwrap();
        file(sys.path(), "block/vdb/dev", "254:16\n");
        file(sys.path(), "block/vdb/size", "41943040\n");
        file(sys.path(), "block/vdb/serial", "bp18um4r4f2fve24k7qz");
        file(sys.path(), "block/vdb/diskseq", "9\n");
        file(sys.path(), "block/vdb/vdb1/partition", "1\n");
        file(sys.path(), "block/vdb/holders/dm-0/dev", "253:0\n");
        let devices = scan(sys.path(), Path::new("/dev"), &Serials::default()).unwrap();
        assert_eq!(
            devices,
            [Device {
                name: "vdb".to_owned(),
                path: "/dev/vdb".into(),
                number: Number {
                    major: 254,
                    minor: 16
                },
                sequence: Some(9),
                size: Bytes(20 << 30),
                serial: Serial::new("bp18um4r4f2fve24k7qz"),
                backing_file: None,
                read_only: false,
                partitions: vec!["vdb1".to_owned()],
                holders: vec!["dm-0".to_owned()],
            }]
        );
    }

    #[test]
    fn an_nvme_serial_is_read_at_the_controller_and_trimmed() {
        let sys = tempfile::tempdir().unwrap();
        file(sys.path(), "block/nvme1n1/dev", "259:1\n");
        file(
            sys.path(),
            "block/nvme1n1/device/serial",
            "bp18um4r4f2fve24k7qz   \n",
        );
        let device = read(
            sys.path(),
            Path::new("/dev"),
            &Serials::default(),
            "nvme1n1",
        )
        .unwrap()
        .unwrap();
        assert_eq!(device.serial, Serial::new("bp18um4r4f2fve24k7qz"));
        assert_eq!(device.size, Bytes(0));
    }

    #[test]
    fn a_hidden_path_of_an_nvme_device_is_left_out() {
        let sys = tempfile::tempdir().unwrap();
        file(sys.path(), "block/nvme0c0n1/dev", "259:0\n");
        file(sys.path(), "block/nvme0c0n1/hidden", "1\n");
        assert_eq!(
            scan(sys.path(), Path::new("/dev"), &Serials::default()).unwrap(),
            []
        );
    }

    #[test]
    fn without_sysfs_there_is_an_error_and_not_no_device() {
        let sys = tempfile::tempdir().unwrap();
        let look = || scan(sys.path(), Path::new("/dev"), &Serials::default());
        assert!(look().is_err());
        fs::create_dir(sys.path().join("block")).unwrap();
        assert_eq!(look().unwrap(), []);
    }

    #[test]
    fn a_number_that_is_none_is_an_error_and_not_a_guess() {
        let sys = tempfile::tempdir().unwrap();
        file(sys.path(), "block/vdb/dev", "254:16\n");
        file(sys.path(), "block/vdb/size", "big\n");
        assert!(scan(sys.path(), Path::new("/dev"), &Serials::default()).is_err());
    }
}
