//! Marks: a person's word that a device without a serial is a certain disk. A mark is of one appearance
//! of the device. When the device leaves or the machine starts anew, it is worth nothing any more.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::observe::quick;
use crate::base::chain::chain;
use crate::host::{Appearance, Device, Entry, Host, HostError, Mount, Number, Records};
use crate::model::{DiskId, Serial};

/// Where [`Records`] keep marks, by disk.
const KIND: &str = "mark";

/// What a person has said of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Which device it is, and until when.
    pub appearance: Appearance,
}

/// A record of a mark that does not read.
#[derive(Debug, thiserror::Error)]
#[error(
    "the mark of {disk} cannot be read, and counts for nothing; remove it, and mark the disk again"
)]
pub struct Broken {
    /// The disk.
    pub disk: DiskId,
    /// Which file, and why.
    #[source]
    pub source: HostError,
}

/// A mark in the list of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The disk.
    pub disk: DiskId,
    /// What was said.
    pub mark: Mark,
    /// Whether it still counts: the device has not left since.
    pub counts: bool,
}

/// Why a device is not marked.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    /// There is no such device, or it is a part of one.
    #[error(
        "{} is no whole block device of this machine: give the node of the disk itself, such as /dev/vdb",
        .0.display()
    )]
    NoDevice(PathBuf),
    /// The kernel itself tells which disk it is.
    #[error(
        "{device} has the serial {serial}: the driver finds it by that, and believes nothing else of it"
    )]
    HasSerial {
        /// The device.
        device: String,
        /// Its serial.
        serial: Serial,
    },
    /// The kernel has made it, of a file or of other devices.
    #[error(
        "{device} with {identity} is no disk of the cloud: the kernel has made it; give the node of the disk itself"
    )]
    MadeUp {
        /// The device.
        device: String,
        /// What it is known by.
        identity: String,
    },
    /// Something uses it.
    #[error("{device} is in use, as system disks are: {by}")]
    InUse {
        /// The device.
        device: String,
        /// What uses it.
        by: String,
    },
    /// It is said to be another disk.
    #[error("{device} is marked as disk {other}: remove that mark first, if it is wrong")]
    OtherDisk {
        /// The device.
        device: String,
        /// The disk.
        other: DiskId,
    },
    /// The disk is said to be another device, which is there.
    #[error(
        "disk {disk} is marked as {device}, which is there: remove that mark first, if it is wrong"
    )]
    OtherDevice {
        /// The disk.
        disk: DiskId,
        /// The device.
        device: String,
    },
    /// Nothing tells one appearance from the next.
    #[error(
        "the kernel does not count the appearances of {device} (it does since Linux 5.15): a mark could not be \
         told from that of a disk that has the name later"
    )]
    Uncounted {
        /// The device.
        device: String,
    },
    /// The machine said no.
    #[error("a mark cannot be made sure of")]
    Host(#[from] HostError),
}

type Result<T> = std::result::Result<T, MarkError>;

/// The marks of one node.
#[derive(Debug)]
pub struct Marks {
    host: Arc<dyn Host>,
    records: Records,
}

impl Marks {
    /// The marks that are kept in this directory (`--state-dir` of the node).
    #[must_use]
    pub fn new(host: Arc<dyn Host>, state_dir: PathBuf) -> Self {
        Self {
            host,
            records: Records::new(state_dir),
        }
    }

    /// Records that the device with this node is the disk, and tells the device in words. Repeatable.
    ///
    /// # Errors
    /// When the device is not there, has a serial, is used, or is marked otherwise; see [`MarkError`].
    pub async fn put(&self, disk: &DiskId, node: &Path) -> Result<String> {
        let device = self.device(node).await?;
        if let Some(serial) = &device.serial {
            let whole = Serial::of_disk(disk);
            if !serial.is_cut_of(&whole) {
                return Err(MarkError::HasSerial {
                    device: device.to_string(),
                    serial: serial.clone(),
                });
            }
        }
        let boot = self.host.boot_id(quick()).await?;
        let appearance = Appearance::of(&boot, &device).ok_or_else(|| MarkError::Uncounted {
            device: device.to_string(),
        })?;
        let mark = Mark { appearance };
        let (known, broken) = self.list().await?;
        for one in broken {
            tracing::warn!("{}", chain(&one));
        }
        for listed in known {
            if listed.disk == *disk && listed.mark == mark {
                return Ok(device.to_string());
            }
            if listed.mark == mark {
                return Err(MarkError::OtherDisk {
                    device: device.to_string(),
                    other: listed.disk,
                });
            }
            if listed.disk == *disk && listed.counts {
                return Err(MarkError::OtherDevice {
                    disk: listed.disk,
                    device: listed.mark.appearance.to_string(),
                });
            }
        }
        self.unused(&device).await?;
        // Of those only a loop device of the fake cloud is a disk, and it bears the disk's name.
        if device.is_made_up() && device.mark() != Some(Serial::of_disk(disk).as_str()) {
            return Err(MarkError::MadeUp {
                device: device.to_string(),
                identity: device.identity(),
            });
        }
        self.records
            .put(quick(), KIND, disk.as_str(), &mark)
            .await?;
        Ok(device.to_string())
    }

    /// Forgets the mark of a disk; whether it had one, also one that does not read any more. What is mounted stays
    /// mounted.
    ///
    /// # Errors
    /// When the record cannot be removed.
    pub async fn remove(&self, disk: &DiskId) -> Result<bool> {
        let marked = self.records.keys(quick(), KIND).await?;
        self.records.remove(quick(), KIND, disk.as_str()).await?;
        Ok(marked.iter().any(|marked| marked == disk.as_str()))
    }

    /// All marks, in the order of the disks' ids, and the records that do not read.
    ///
    /// # Errors
    /// When the records' directory or devices cannot be read.
    pub async fn list(&self) -> Result<(Vec<Listed>, Vec<Broken>)> {
        let devices = self.host.devices(quick()).await?;
        let boot = self.host.boot_id(quick()).await?;
        let mut marks = Vec::new();
        let (known, broken) = all(&self.records).await?;
        for (disk, mark) in known {
            let now = devices
                .iter()
                .filter_map(|device| Appearance::of(&boot, device));
            let counts = now.into_iter().any(|now| now == mark.appearance);
            marks.push(Listed { disk, mark, counts });
        }
        Ok((marks, broken))
    }

    async fn device(&self, node: &Path) -> Result<Device> {
        let none = || MarkError::NoDevice(node.to_owned());
        let Entry::Block(number) = self.host.entry(quick(), node).await? else {
            return Err(none());
        };
        let devices = self.host.devices(quick()).await?;
        let device = devices.into_iter().find(|device| device.number == number);
        device.ok_or_else(none)
    }

    /// A disk that waits to be staged is used by nobody, on this side of the container or the other.
    async fn unused(&self, device: &Device) -> Result<()> {
        let in_use = |by: String| MarkError::InUse {
            device: device.to_string(),
            by,
        };
        if !device.holders.is_empty() {
            return Err(in_use(device.holders.join(", ")));
        }
        let mounts = self.host.mounts(quick()).await?;
        let mut numbers = vec![device.number];
        for partition in &device.partitions {
            let node = device.path.with_file_name(partition);
            match self.host.entry(quick(), &node).await? {
                Entry::Block(number) => numbers.push(number),
                _ => return Err(in_use(format!("{partition} cannot be looked at"))),
            }
        }
        if let Some(mount) = mounts.iter().find(|mount| is_of(mount, device, &numbers)) {
            let point = mount.point.display();
            return Err(in_use(format!("it is mounted at {point}")));
        }
        // Only who has the device alone may read it so: this finds what other mount namespaces use.
        match self.host.content(quick(), device).await {
            Ok(_) | Err(HostError::Unclear { .. }) => Ok(()),
            Err(error) if error.io_kind() == Some(std::io::ErrorKind::ResourceBusy) => {
                Err(in_use("the kernel has given it to somebody".to_owned()))
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn is_of(mount: &Mount, device: &Device, numbers: &[Number]) -> bool {
    mount.is_of(device) || numbers.contains(&mount.number)
}

/// The marks in these records, and those that do not read.
pub(super) async fn all(
    records: &Records,
) -> std::result::Result<(Vec<(DiskId, Mark)>, Vec<Broken>), HostError> {
    let (mut marks, mut broken) = (Vec::new(), Vec::new());
    for key in records.keys(quick(), KIND).await? {
        // Nothing else is kept there; what somebody has put there himself is not ours.
        let Ok(disk) = key.parse::<DiskId>() else {
            continue;
        };
        match records.get(quick(), KIND, &key).await {
            Ok(Some(mark)) => marks.push((disk, mark)),
            Ok(None) => {}
            Err(source @ HostError::Format { .. }) => broken.push(Broken { disk, source }),
            Err(error) => return Err(error),
        }
    }
    Ok((marks, broken))
}

/// The mark of a disk.
pub(super) async fn of(
    records: &Records,
    disk: &DiskId,
) -> std::result::Result<Option<Mark>, HostError> {
    records.get(quick(), KIND, disk.as_str()).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::{Fake, State, disk, mount_of};

    fn bare(name: &str, minor: u64) -> Device {
        Device {
            serial: None,
            ..disk(name, minor, "x")
        }
    }

    fn disk_id(text: &str) -> DiskId {
        text.parse().unwrap()
    }

    /// A machine with these devices, and its marks.
    fn machine(devices: &[Device]) -> (tempfile::TempDir, Arc<Fake>, Marks) {
        let home = tempfile::tempdir().unwrap();
        let fake = Arc::new(Fake::new(State {
            devices: devices.to_vec(),
            ..State::default()
        }));
        let host = Arc::clone(&fake);
        let marks = Marks::new(host, home.path().to_owned());
        (home, fake, marks)
    }

    async fn refusal(device: Device) -> String {
        let node = device.path.clone();
        let (_home, _fake, marks) = machine(&[device]);
        let refused = marks.put(&disk_id("d-bp1"), &node).await.unwrap_err();
        assert_eq!(marks.list().await.unwrap().0, []);
        refused.to_string()
    }

    #[tokio::test]
    async fn a_mark_counts_until_the_device_leaves() {
        let (_home, fake, marks) = machine(&[bare("vdb", 16)]);
        let (disk, node) = (disk_id("d-bp1"), Path::new("/dev/vdb"));
        for _ in 0..2 {
            let told = marks.put(&disk, node).await.unwrap();
            assert_eq!(told, "/dev/vdb (254:16)");
        }
        let count = async || -> Vec<bool> {
            let (listed, _) = marks.list().await.unwrap();
            listed.iter().map(|listed| listed.counts).collect()
        };
        assert_eq!(count().await, [true]);
        fake.state().devices[0].sequence = Some(99);
        assert_eq!(count().await, [false]);
        // What counts no more does not stand in the way.
        marks.put(&disk_id("d-bp2"), node).await.unwrap();
        assert_eq!(count().await, [false, true]);
        for had_one in [true, false] {
            assert_eq!(marks.remove(&disk).await.unwrap(), had_one);
        }
        assert_eq!(count().await, [true]);
    }

    #[tokio::test]
    async fn one_device_is_one_disk_and_one_disk_one_device() {
        let (_home, _fake, marks) = machine(&[bare("vdb", 16), bare("vdc", 32)]);
        let disk = disk_id("d-bp1");
        let (first, second) = (Path::new("/dev/vdb"), Path::new("/dev/vdc"));
        marks.put(&disk, first).await.unwrap();
        let refused = marks.put(&disk_id("d-bp2"), first).await.unwrap_err();
        assert!(matches!(refused, MarkError::OtherDisk { .. }), "{refused}");
        let refused = marks.put(&disk, second).await.unwrap_err();
        assert!(
            matches!(refused, MarkError::OtherDevice { .. }),
            "{refused}"
        );
        assert!(marks.remove(&disk).await.unwrap());
        marks.put(&disk, second).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_certain_or_used_is_not_marked() {
        let plain = bare("vdb", 16);
        let with_serial = disk("vdb", 16, "bp2");
        let uncounted = Device {
            sequence: None,
            ..plain.clone()
        };
        let held = Device {
            holders: vec!["dm-0".to_owned()],
            ..plain.clone()
        };
        let partitioned = Device {
            partitions: vec!["vdb1".to_owned()],
            ..plain.clone()
        };
        let made_up = bare("dm-0", 16);
        let of_another = Device {
            backing_file: Some("/disks/bp2.img".into()),
            ..bare("loop3", 16)
        };
        for (device, word) in [
            (with_serial, "has the serial bp2"),
            (uncounted, "does not count the appearances"),
            (made_up, "is no disk of the cloud"),
            (
                of_another,
                "backing file /disks/bp2.img is no disk of the cloud",
            ),
            (held, "in use, as system disks are: dm-0"),
            (partitioned, "vdb1 cannot be looked at"),
        ] {
            let told = refusal(device).await;
            assert!(told.contains(word), "{told}");
        }
    }

    #[tokio::test]
    async fn a_disk_that_is_mounted_as_a_whole_or_in_part_is_not_marked() {
        let whole = Device {
            partitions: vec!["vdb1".to_owned()],
            ..bare("vdb", 16)
        };
        let part = bare("vdb1", 17);
        let (disk, node) = (disk_id("d-bp1"), Path::new("/dev/vdb"));
        for mounted in [&whole, &part] {
            let (_home, fake, marks) = machine(std::slice::from_ref(&whole));
            let entry = (part.path.clone(), Entry::Block(part.number));
            fake.state().entries.extend([entry]);
            fake.state().mounts = vec![mount_of(mounted, "/data", "rw")];
            let told = marks.put(&disk, node).await.unwrap_err().to_string();
            assert!(told.contains("mounted at /data"), "{told}");
            fake.state().mounts.clear();
            marks.put(&disk, node).await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_is_no_whole_device_is_not_marked() {
        let (_home, fake, marks) = machine(&[bare("vdb", 16)]);
        let part = bare("vdb1", 17);
        let entry = (part.path.clone(), Entry::Block(part.number));
        fake.state().entries.extend([entry]);
        for path in ["/dev/vdb1", "/dev/vdz"] {
            let refused = marks.put(&disk_id("d-bp1"), Path::new(path)).await;
            let refused = refused.unwrap_err();
            assert!(matches!(refused, MarkError::NoDevice(_)), "{refused}");
        }
    }

    #[tokio::test]
    async fn a_loop_device_is_marked_only_as_the_disk_whose_file_it_has() {
        let device = Device {
            backing_file: Some("/disks/bp1.img".into()),
            ..bare("loop3", 16)
        };
        let node = device.path.clone();
        let (_home, _fake, marks) = machine(&[device]);
        marks.put(&disk_id("d-bp1"), &node).await.unwrap();
    }

    #[tokio::test]
    async fn a_record_that_does_not_read_is_named_and_hides_no_other() {
        let (home, _fake, marks) = machine(&[bare("vdb", 16), bare("vdc", 32)]);
        let first = disk_id("d-bp1");
        marks.put(&first, Path::new("/dev/vdb")).await.unwrap();
        std::fs::write(home.path().join("mark/d-bp0.json"), "{").unwrap();
        let (listed, broken) = marks.list().await.unwrap();
        assert_eq!(listed.len(), 1);
        let told = chain(&broken[0]);
        assert!(
            told.contains("d-bp0") && told.contains("remove it"),
            "{told}"
        );
        assert!(told.contains("mark/d-bp0.json"), "{told}");
        // It keeps nobody from marking, and goes as any other.
        marks
            .put(&disk_id("d-bp2"), Path::new("/dev/vdc"))
            .await
            .unwrap();
        assert!(marks.remove(&disk_id("d-bp0")).await.unwrap());
        assert!(marks.list().await.unwrap().1.is_empty());
    }

    #[tokio::test]
    async fn the_beginning_of_a_longer_serial_may_be_vouched_for() {
        let (_home, _fake, marks) = machine(&[disk("vdb", 16, "bp18um4r4f2fve24k7qz")]);
        let node = Path::new("/dev/vdb");
        let longer = disk_id("d-bp18um4r4f2fve24k7qz1");
        marks.put(&longer, node).await.unwrap();
        let whole = disk_id("d-bp18um4r4f2fve24k7qz");
        let refused = marks.put(&whole, node).await.unwrap_err();
        assert!(matches!(refused, MarkError::HasSerial { .. }), "{refused}");
    }
}
