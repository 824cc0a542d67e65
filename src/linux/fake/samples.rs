//! Devices, mounts and files for tests.

use std::fs;
use std::path::Path;

use crate::linux::{Device, DeviceNumber, DeviceSequence, Mount, Partition};
use crate::model::{Bytes, Serial};

/// Writes a file below a directory, and creates its parents.
pub(crate) fn write_file(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A whole virtio disk of 1 GiB, without a serial if it is empty.
pub(crate) fn disk(name: &str, minor: u64, serial: &str) -> Device {
    Device {
        name: name.to_owned(),
        path: Path::new("/dev").join(name),
        number: DeviceNumber { major: 254, minor },
        sequence: Some(DeviceSequence::Diskseq(minor)),
        size: Bytes(1 << 30),
        serial: Serial::new(serial),
        model: None,
        serial_pending: false,
        backing_file: None,
        read_only: false,
        partitions: Vec::new(),
        holders: Vec::new(),
        partition_of: None,
    }
}

/// The only partition of a device, from 1 MiB to its end.
pub(crate) fn partition(device: &Device) -> Partition {
    Partition {
        name: format!("{}1", device.name),
        index: 1,
        number: DeviceNumber {
            minor: device.number.minor + 1,
            ..device.number
        },
        start: Bytes(1 << 20),
        size: Bytes(device.size.0 - (1 << 20)),
        holders: Vec::new(),
    }
}

/// A mount of the root of the device's filesystem.
pub(crate) fn mount_of(device: &Device, point: &str, options: &str) -> Mount {
    Mount {
        number: device.number,
        root: "/".into(),
        point: point.into(),
        options: options.to_owned(),
        kind: "ext4".to_owned(),
        source: device.path.clone(),
        super_options: "rw".to_owned(),
        is_of_dev: false,
        is_shared: false,
    }
}
