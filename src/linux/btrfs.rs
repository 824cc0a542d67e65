//! Mounted btrfs filesystems in sysfs (`/sys/fs/btrfs`). Their mounts have device numbers of their own, and the mount
//! table shows only the name under which a device was registered.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::device::Device;
use super::error::{IoResult, Result};
use super::sysfs::names;

/// Offset of `fsid` in the superblock: the superblock at 64 KiB, then 32 bytes of checksum (`struct
/// btrfs_super_block`).
const FSID: u64 = (64 << 10) + 32;

/// The directory of the mounted filesystem that the device is part of.
pub(super) fn mounted(sys: &Path, device: &Device) -> Result<Option<PathBuf>> {
    let all = sys.join("fs/btrfs");
    let names = names(&all)?;
    let mut filesystems = names.iter().map(|name| all.join(name));
    Ok(filesystems.find(|dir| dir.join("devices").join(&device.name).exists()))
}

pub(super) fn devices_with_same_uuid(sys: &Path, device: &Device) -> Result<Vec<String>> {
    let uuid = uuid(device).io_context("read", &device.path)?;
    names(&sys.join("fs/btrfs").join(uuid).join("devices"))
}

fn uuid(device: &Device) -> io::Result<String> {
    let mut fsid = [0; 16];
    fs::File::open(&device.path)?.read_exact_at(&mut fsid, FSID)?;
    Ok(Uuid::from_bytes(fsid).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::fake::disk;

    const UUID: &str = "00112233-4455-6677-8899-aabbccddeeff";

    #[test]
    fn mounted_filesystems_are_found_by_device_and_by_uuid() {
        let dir = tempfile::tempdir().unwrap();
        let sys = dir.path().join("sys");
        let mut source = disk("vdb", 16, "bp1");
        assert!(mounted(&sys, &source).unwrap().is_none());
        fs::create_dir_all(sys.join("fs/btrfs/features")).unwrap();
        fs::create_dir_all(sys.join("fs/btrfs").join(UUID).join("devices/vdb")).unwrap();
        assert!(mounted(&sys, &source).unwrap().is_some());

        let mut copy = disk("vdc", 32, "bp2");
        assert!(mounted(&sys, &copy).unwrap().is_none());
        let mut image = vec![0; 70 << 10];
        let start = usize::try_from(FSID).unwrap();
        for (index, byte) in image[start..start + 16].iter_mut().enumerate() {
            *byte = u8::try_from(index * 17).unwrap();
        }
        for device in [&mut source, &mut copy] {
            device.path = dir.path().join(&device.name);
            fs::write(&device.path, &image).unwrap();
            assert_eq!(devices_with_same_uuid(&sys, device).unwrap(), ["vdb"]);
        }
        fs::write(&copy.path, vec![0; 70 << 10]).unwrap();
        assert!(devices_with_same_uuid(&sys, &copy).unwrap().is_empty());
    }
}
