//! Compares the mount table, the devices and the content of the disks with the model.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::common::loop_device::{attribute, backing_file};
use crate::common::mounts::mounts;
use crate::model::machine::{FOREIGN_DATA, FOREIGN_DATA_OFFSET, Machine, parse_mount};
use crate::model::world::{Content, Device, Entry, FsType, MOUNT_POINTS, Mount, VOLUMES, World};

/// Panics if the system differs from the model.
pub(crate) fn verify(machine: &mut Machine, world: &World) {
    let lines = mounts(machine.dir.path());
    for line in &lines {
        let known = (0..MOUNT_POINTS).any(|mount_point| machine.mount_point(mount_point) == line.point);
        assert!(known, "unexpected mount: {line:?}");
    }
    for mount_point in 0..MOUNT_POINTS {
        let path = machine.mount_point(mount_point);
        let stack: Vec<Mount> = lines
            .iter()
            .filter(|line| line.point == path)
            .map(|line| parse_mount(machine, line))
            .collect();
        let expected = &world.mount_points[mount_point];
        assert_eq!(stack, expected.stack, "mounts at {mount_point}");
        if stack.is_empty() {
            assert_eq!(entry(&path), expected.entry, "entry at {mount_point}");
        }
    }
    for volume in 0..VOLUMES {
        verify_device(machine, world, volume);
        verify_content(machine, world, volume);
    }
}

fn entry(path: &Path) -> Entry {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Entry::Missing;
    };
    if found.is_symlink() {
        return Entry::Symlink;
    }
    let is_non_empty = match found.is_dir() {
        true => fs::read_dir(path).unwrap().next().is_some(),
        false => found.len() > 0,
    };
    match (found.is_dir(), is_non_empty) {
        (true, false) => Entry::Directory,
        (true, true) => Entry::NonEmptyDirectory,
        (false, false) => Entry::File,
        (false, true) => Entry::NonEmptyFile,
    }
}

fn verify_device(machine: &Machine, world: &World, volume: usize) {
    let Device::Present { write_protected, .. } = world.volumes[volume].device else {
        return;
    };
    let device = machine.loops[volume].as_ref().unwrap();
    assert_eq!(backing_file(device), Some(machine.image(volume)));
    let read_only = attribute(device, "ro").as_deref() == Some("1");
    assert_eq!(read_only, write_protected, "read-only flag of volume {volume}");
}

fn verify_content(machine: &mut Machine, world: &World, volume: usize) {
    let own = &world.volumes[volume];
    let image = File::open(machine.image(volume)).unwrap();
    let mut head = vec![0; 128 << 10];
    image.read_exact_at(&mut head, 0).unwrap();
    let mut foreign_data = [0; FOREIGN_DATA.len()];
    image.read_exact_at(&mut foreign_data, FOREIGN_DATA_OFFSET).unwrap();
    let uuid_at = match own.fs {
        FsType::Ext4 => 1024 + 0x68,
        FsType::Xfs => 32,
        FsType::Btrfs => (64 << 10) + 32,
    };
    let (data, undersized) = match own.content {
        Content::Filesystem { data, undersized } => (data, undersized),
        Content::Blank | Content::Foreign => {
            assert!(head.iter().all(|&byte| byte == 0), "volume {volume} was formatted");
            let foreign = own.content == Content::Foreign;
            assert_eq!(foreign_data == FOREIGN_DATA, foreign, "foreign data of volume {volume}");
            return;
        }
    };
    let uuid: [u8; 16] = head[uuid_at..uuid_at + 16].try_into().unwrap();
    assert_ne!(uuid, [0; 16], "volume {volume} has no filesystem");
    let before = *machine.uuids[volume].get_or_insert(uuid);
    assert_eq!(uuid, before, "volume {volume} was formatted again");
    for mount_point in 0..MOUNT_POINTS {
        let is_visible = matches!(world.top(mount_point), Some(Mount::Filesystem { volume: v, .. }) if v == volume);
        if !is_visible {
            continue;
        }
        let path = machine.mount_point(mount_point);
        let kept = fs::read(path.join("kept")).ok();
        let expected = data.map(|data| vec![data]);
        assert_eq!(kept, expected, "data of volume {volume} at {mount_point}");
        let size = nix::sys::statvfs::statvfs(&path).unwrap();
        let size = size.blocks() * size.fragment_size();
        let fills = !undersized && own.resized;
        assert_eq!(
            size > own.fs.grown_threshold(),
            fills,
            "whether the filesystem of volume {volume} fills its disk"
        );
    }
}
