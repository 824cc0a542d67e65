//! Mappings of devices without a serial to disks (`diskplugin map`). A mapping is of one incarnation of the device:
//! after its removal or a reboot it is invalid.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::observe::quick;
use crate::base::error_chain;
use crate::host::{
    Device, DeviceIncarnation, DeviceNumber, Entry, Host, HostError, Mount, Records,
};
use crate::model::{DiskId, Serial};

/// The kind of these records. Their key is the disk ID.
const KIND: &str = "map";

/// The device that a disk is mapped to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    pub incarnation: DeviceIncarnation,
}

/// A mapping whose record is unreadable.
#[derive(Debug, thiserror::Error)]
#[error("the mapping of {disk} is unreadable and ignored; remove it, and map the disk again")]
pub struct UnreadableMapping {
    pub disk: DiskId,
    #[source]
    pub source: HostError,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedMapping {
    pub disk: DiskId,
    pub mapping: Mapping,
    /// Whether the device is still the same incarnation.
    pub is_valid: bool,
}

/// The reason why a device cannot be mapped.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The device does not exist, or is a partition.
    #[error(
        "{} is not a whole block device of this node: specify the device node of the disk, such as /dev/vdb",
        .0.display()
    )]
    NoDevice(PathBuf),
    /// The device has a serial.
    #[error(
        "{device} has the serial {serial}: the driver identifies the device only by its serial"
    )]
    HasSerial { device: String, serial: Serial },
    /// A loop, device-mapper or md device.
    #[error(
        "{device} with {identity} is not a cloud disk but a virtual device; specify the device node of the disk"
    )]
    VirtualDevice {
        device: String,
        /// Its serial or backing file.
        identity: String,
    },
    #[error("{device} is in use, like a system disk: {by}")]
    InUse { device: String, by: String },
    /// The device is mapped to another disk.
    #[error("{device} is mapped to disk {other}: remove that mapping first if it is wrong")]
    DeviceAlreadyMapped { device: String, other: DiskId },
    /// The disk is mapped to another existing device.
    #[error(
        "disk {disk} is mapped to {device}, which exists: remove that mapping first if it is wrong"
    )]
    DiskAlreadyMapped { disk: DiskId, device: String },
    /// A virtual device on a kernel without `diskseq`.
    #[error(
        "the kernel provides no diskseq for {device} (Linux 5.15 or newer does): a mapping of this virtual device could not \
         be distinguished from one of a later device with the same name"
    )]
    NoDiskSequence { device: String },
    /// The device or the mappings cannot be read.
    #[error("cannot verify the device")]
    Host(#[from] HostError),
}

type Result<T> = std::result::Result<T, MapError>;

/// The mappings of one node.
#[derive(Debug)]
pub struct Mappings {
    host: Arc<dyn Host>,
    records: Records,
}

impl Mappings {
    /// The mappings in this directory (`--state-dir` of the node).
    #[must_use]
    pub fn new(host: Arc<dyn Host>, state_dir: PathBuf) -> Self {
        Self {
            host,
            records: Records::new(state_dir),
        }
    }

    /// Maps the device with this device node to the disk, and returns the device for display. Idempotent.
    ///
    /// # Errors
    /// If the device does not exist, has a serial, is in use or is mapped differently; see [`MapError`].
    pub async fn add(&self, disk: &DiskId, node: &Path) -> Result<String> {
        let device = self.device(node).await?;
        if let Some(serial) = &device.serial {
            let complete = Serial::from_disk_id(disk);
            if !serial.is_truncation_of(&complete) {
                return Err(MapError::HasSerial {
                    device: device.to_string(),
                    serial: serial.clone(),
                });
            }
        }
        let boot = self.host.boot_id(quick()).await?;
        let incarnation =
            DeviceIncarnation::new(&boot, &device).ok_or_else(|| MapError::NoDiskSequence {
                device: device.to_string(),
            })?;
        let mapping = Mapping { incarnation };
        let (known, unreadable) = self.list().await?;
        for mapping in unreadable {
            tracing::warn!("{}", error_chain(&mapping));
        }
        for listed in known {
            if listed.disk == *disk && listed.mapping == mapping {
                return Ok(device.to_string());
            }
            if listed.mapping == mapping {
                return Err(MapError::DeviceAlreadyMapped {
                    device: device.to_string(),
                    other: listed.disk,
                });
            }
            if listed.disk == *disk && listed.is_valid {
                return Err(MapError::DiskAlreadyMapped {
                    disk: listed.disk,
                    device: listed.mapping.incarnation.to_string(),
                });
            }
        }
        self.check_unused(&device).await?;
        // The only virtual devices that can be disks are loop devices of the fake cloud, whose backing file has the
        // disk's serial.
        if device.is_virtual()
            && device.backing_serial() != Some(Serial::from_disk_id(disk).as_str())
        {
            return Err(MapError::VirtualDevice {
                device: device.to_string(),
                identity: device.identity(),
            });
        }
        self.records
            .put(quick(), KIND, disk.as_str(), &mapping)
            .await?;
        Ok(device.to_string())
    }

    /// Removes the mapping of a disk, even if it is unreadable, and returns whether one existed.
    /// Mounts are not affected.
    ///
    /// # Errors
    /// If the record cannot be removed.
    pub async fn remove(&self, disk: &DiskId) -> Result<bool> {
        let mapped_disks = self.records.keys(quick(), KIND).await?;
        self.records.remove(quick(), KIND, disk.as_str()).await?;
        Ok(mapped_disks.iter().any(|mapped| mapped == disk.as_str()))
    }

    /// All mappings, sorted by disk ID, and the unreadable ones.
    ///
    /// # Errors
    /// If the records' directory or the devices cannot be read.
    pub async fn list(&self) -> Result<(Vec<ListedMapping>, Vec<UnreadableMapping>)> {
        let devices = self.host.devices(quick()).await?;
        let boot = self.host.boot_id(quick()).await?;
        let mut mappings = Vec::new();
        let (known, unreadable) = all(&self.records).await?;
        for (disk, mapping) in known {
            let mut incarnations = devices
                .iter()
                .filter_map(|device| DeviceIncarnation::new(&boot, device));
            let is_valid = incarnations.any(|current| current == mapping.incarnation);
            mappings.push(ListedMapping {
                disk,
                mapping,
                is_valid,
            });
        }
        Ok((mappings, unreadable))
    }

    async fn device(&self, node: &Path) -> Result<Device> {
        let no_device = || MapError::NoDevice(node.to_owned());
        let Entry::BlockDevice(number) = self.host.entry(quick(), node).await? else {
            return Err(no_device());
        };
        let devices = self.host.devices(quick()).await?;
        let device = devices.into_iter().find(|device| device.number == number);
        device.ok_or_else(no_device)
    }

    /// Checks that the device is unused, inside and outside of this container.
    async fn check_unused(&self, device: &Device) -> Result<()> {
        let in_use = |by: String| MapError::InUse {
            device: device.to_string(),
            by,
        };
        if !device.holders.is_empty() {
            return Err(in_use(device.holders.join(", ")));
        }
        let mounts = self.host.mounts(quick()).await?;
        let mut numbers = vec![device.number];
        numbers.extend(device.partitions.iter().map(|partition| partition.number));
        if let Some(mount) = mounts.iter().find(|mount| is_of(mount, device, &numbers)) {
            let point = mount.point.display();
            return Err(in_use(format!("it is mounted at {point}")));
        }
        // This opens the device exclusively, which also detects use in other mount namespaces.
        match self.host.content(quick(), device).await {
            Ok(_) | Err(HostError::AmbiguousContent { .. }) => Ok(()),
            Err(error) if error.io_kind() == Some(std::io::ErrorKind::ResourceBusy) => Err(in_use(
                "another process or the kernel holds it exclusively".to_owned(),
            )),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_of(mount: &Mount, device: &Device, numbers: &[DeviceNumber]) -> bool {
    mount.is_of(device) || numbers.contains(&mount.number)
}

/// The mappings in these records, and the unreadable ones.
pub(super) async fn all(
    records: &Records,
) -> std::result::Result<(Vec<(DiskId, Mapping)>, Vec<UnreadableMapping>), HostError> {
    let (mut mappings, mut unreadable) = (Vec::new(), Vec::new());
    for key in records.keys(quick(), KIND).await? {
        // Files with other names do not belong to the driver.
        let Ok(disk) = key.parse::<DiskId>() else {
            continue;
        };
        match records.get(quick(), KIND, &key).await {
            Ok(Some(mapping)) => mappings.push((disk, mapping)),
            Ok(None) => {}
            Err(source @ HostError::UnexpectedFormat { .. }) => {
                unreadable.push(UnreadableMapping { disk, source });
            }
            Err(error) => return Err(error),
        }
    }
    Ok((mappings, unreadable))
}

/// The mapping of a disk.
pub(super) async fn get(
    records: &Records,
    disk: &DiskId,
) -> std::result::Result<Option<Mapping>, HostError> {
    records.get(quick(), KIND, disk.as_str()).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::{FakeHost, State, disk, mount_of, partition};

    fn without_serial(name: &str, minor: u64) -> Device {
        Device {
            serial: None,
            ..disk(name, minor, "x")
        }
    }

    fn disk_id(text: &str) -> DiskId {
        text.parse().unwrap()
    }

    fn node_with(devices: &[Device]) -> (tempfile::TempDir, Arc<FakeHost>, Mappings) {
        let home = tempfile::tempdir().unwrap();
        let fake = Arc::new(FakeHost::new(State {
            devices: devices.to_vec(),
            ..State::default()
        }));
        let host = Arc::clone(&fake);
        let mappings = Mappings::new(host, home.path().to_owned());
        (home, fake, mappings)
    }

    async fn add_error(device: Device) -> String {
        let node = device.path.clone();
        let (_home, _fake, mappings) = node_with(&[device]);
        let error = mappings.add(&disk_id("d-bp1"), &node).await.unwrap_err();
        assert_eq!(mappings.list().await.unwrap().0, []);
        error.to_string()
    }

    #[tokio::test]
    async fn a_mapping_is_valid_until_the_device_is_removed() {
        let (_home, fake, mappings) = node_with(&[without_serial("vdb", 16)]);
        let (disk, node) = (disk_id("d-bp1"), Path::new("/dev/vdb"));
        for _ in 0..2 {
            let message = mappings.add(&disk, node).await.unwrap();
            assert_eq!(message, "/dev/vdb (254:16)");
        }
        let validity = async || -> Vec<bool> {
            let (listed, _) = mappings.list().await.unwrap();
            listed.iter().map(|listed| listed.is_valid).collect()
        };
        assert_eq!(validity().await, [true]);
        fake.state().devices[0].sequence = Some(crate::host::DeviceSequence::Diskseq(99));
        assert_eq!(validity().await, [false]);
        // An invalid mapping does not prevent another one of the device.
        mappings.add(&disk_id("d-bp2"), node).await.unwrap();
        assert_eq!(validity().await, [false, true]);
        for existed in [true, false] {
            assert_eq!(mappings.remove(&disk).await.unwrap(), existed);
        }
        assert_eq!(validity().await, [true]);
    }

    #[tokio::test]
    async fn a_device_is_mapped_to_one_disk_and_a_disk_to_one_device() {
        let (_home, _fake, mappings) =
            node_with(&[without_serial("vdb", 16), without_serial("vdc", 32)]);
        let disk = disk_id("d-bp1");
        let (first, second) = (Path::new("/dev/vdb"), Path::new("/dev/vdc"));
        mappings.add(&disk, first).await.unwrap();
        let error = mappings.add(&disk_id("d-bp2"), first).await.unwrap_err();
        assert!(
            matches!(error, MapError::DeviceAlreadyMapped { .. }),
            "{error}"
        );
        let error = mappings.add(&disk, second).await.unwrap_err();
        assert!(
            matches!(error, MapError::DiskAlreadyMapped { .. }),
            "{error}"
        );
        assert!(mappings.remove(&disk).await.unwrap());
        mappings.add(&disk, second).await.unwrap();
    }

    #[tokio::test]
    async fn devices_with_serial_and_devices_in_use_cannot_be_mapped() {
        let plain = without_serial("vdb", 16);
        let with_serial = disk("vdb", 16, "bp2");
        let without_diskseq = Device {
            sequence: None,
            ..plain.clone()
        };
        let held = Device {
            holders: vec!["dm-0".to_owned()],
            ..plain.clone()
        };
        let virtual_device = without_serial("dm-0", 16);
        let of_another = Device {
            backing_file: Some("/disks/bp2.img".into()),
            ..without_serial("loop3", 16)
        };
        for (device, word) in [
            (with_serial, "has the serial bp2"),
            (without_diskseq, "provides no diskseq"),
            (virtual_device, "is not a cloud disk"),
            (
                of_another,
                "backing file /disks/bp2.img is not a cloud disk",
            ),
            (held, "in use, like a system disk: dm-0"),
        ] {
            let message = add_error(device).await;
            assert!(message.contains(word), "{message}");
        }
    }

    #[tokio::test]
    async fn a_disk_with_a_mounted_partition_cannot_be_mapped() {
        let whole = Device {
            partitions: vec![partition(&disk("vdb", 16, ""))],
            ..without_serial("vdb", 16)
        };
        let part = without_serial("vdb1", 17);
        let (disk, node) = (disk_id("d-bp1"), Path::new("/dev/vdb"));
        for mounted in [&whole, &part] {
            let (_home, fake, mappings) = node_with(std::slice::from_ref(&whole));
            let entry = (part.path.clone(), Entry::BlockDevice(part.number));
            fake.state().entries.extend([entry]);
            fake.state().mounts = vec![mount_of(mounted, "/data", "rw")];
            let message = mappings.add(&disk, node).await.unwrap_err().to_string();
            assert!(message.contains("mounted at /data"), "{message}");
            fake.state().mounts.clear();
            mappings.add(&disk, node).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_partition_cannot_be_mapped() {
        let (_home, fake, mappings) = node_with(&[without_serial("vdb", 16)]);
        let part = without_serial("vdb1", 17);
        let entry = (part.path.clone(), Entry::BlockDevice(part.number));
        fake.state().entries.extend([entry]);
        for path in ["/dev/vdb1", "/dev/vdz"] {
            let error = mappings.add(&disk_id("d-bp1"), Path::new(path)).await;
            let error = error.unwrap_err();
            assert!(matches!(error, MapError::NoDevice(_)), "{error}");
        }
    }

    #[tokio::test]
    async fn a_loop_device_can_be_mapped_to_the_disk_of_its_file() {
        let device = Device {
            backing_file: Some("/disks/bp1.img".into()),
            ..without_serial("loop3", 16)
        };
        let node = device.path.clone();
        let (_home, _fake, mappings) = node_with(&[device]);
        mappings.add(&disk_id("d-bp1"), &node).await.unwrap();
    }

    #[tokio::test]
    async fn an_unreadable_mapping_is_listed_and_does_not_hide_others() {
        let (home, _fake, mappings) =
            node_with(&[without_serial("vdb", 16), without_serial("vdc", 32)]);
        let first = disk_id("d-bp1");
        mappings.add(&first, Path::new("/dev/vdb")).await.unwrap();
        std::fs::write(home.path().join("map/d-bp0.json"), "{").unwrap();
        let (listed, unreadable) = mappings.list().await.unwrap();
        assert_eq!(listed.len(), 1);
        let message = error_chain(&unreadable[0]);
        assert!(
            message.contains("d-bp0") && message.contains("remove it"),
            "{message}"
        );
        assert!(message.contains("map/d-bp0.json"), "{message}");
        // It does not prevent new mappings, and can be removed.
        mappings
            .add(&disk_id("d-bp2"), Path::new("/dev/vdc"))
            .await
            .unwrap();
        assert!(mappings.remove(&disk_id("d-bp0")).await.unwrap());
        assert!(mappings.list().await.unwrap().1.is_empty());
    }

    #[tokio::test]
    async fn a_device_with_a_truncated_serial_can_be_mapped() {
        let (_home, _fake, mappings) = node_with(&[disk("vdb", 16, "bp18um4r4f2fve24k7qz")]);
        let node = Path::new("/dev/vdb");
        let longer = disk_id("d-bp18um4r4f2fve24k7qz1");
        mappings.add(&longer, node).await.unwrap();
        let whole = disk_id("d-bp18um4r4f2fve24k7qz");
        let error = mappings.add(&whole, node).await.unwrap_err();
        assert!(matches!(error, MapError::HasSerial { .. }), "{error}");
    }
}
