//! The real world as the kernel and the disks tell it, held against the model.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::machine::{LETTER, LETTER_AT, Machine, layer};
use crate::world::{Content, Device, Fs, Layer, PLACES, Under, VOLUMES, World};

/// A line of the mount table.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) root: String,
    pub(crate) point: PathBuf,
    pub(crate) kind: String,
    pub(crate) source: String,
    pub(crate) read_only: bool,
}

/// The mounts below a directory, in the order in which they were made.
fn lines(below: &Path) -> Vec<Line> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let is_ro = |options: &str| options.split(',').any(|option| option == "ro");
    let line = |line: &str| {
        let (left, right) = line.split_once(" - ").unwrap();
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        Line {
            root: left[3].to_owned(),
            point: PathBuf::from(left[4]),
            kind: right[0].to_owned(),
            source: right[1].to_owned(),
            read_only: is_ro(left[5]) || is_ro(right[2]),
        }
    };
    let all = table.lines().map(line);
    all.filter(|line| line.point.starts_with(below)).collect()
}

/// The file behind a loop device.
pub(crate) fn backing_file(device: &Path) -> Option<PathBuf> {
    let text = attribute(device, "loop/backing_file")?;
    Some(PathBuf::from(text))
}

fn attribute(device: &Path, name: &str) -> Option<String> {
    let device = device.file_name()?.to_str()?;
    let text = fs::read_to_string(format!("/sys/block/{device}/{name}")).ok()?;
    Some(text.trim_end().to_owned())
}

/// Fails where the real world is not the model's.
pub(crate) fn compare(machine: &mut Machine, world: &World) {
    let lines = lines(machine.dir.path());
    for line in &lines {
        let known = (0..PLACES).any(|place| machine.place(place) == line.point);
        assert!(known, "nobody named {line:?}");
    }
    for place in 0..PLACES {
        let path = machine.place(place);
        let stack: Vec<Layer> = lines
            .iter()
            .filter(|line| line.point == path)
            .map(|line| layer(machine, line))
            .collect();
        let wanted = &world.places[place];
        assert_eq!(stack, wanted.stack, "what is mounted at place {place}");
        if stack.is_empty() {
            assert_eq!(under(&path), wanted.under, "what is at place {place}");
        }
    }
    for volume in 0..VOLUMES {
        look_at_device(machine, world, volume);
        look_at_content(machine, world, volume);
    }
}

fn under(path: &Path) -> Under {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Under::Missing;
    };
    if found.is_symlink() {
        return Under::Symlink;
    }
    let is_full = match found.is_dir() {
        true => fs::read_dir(path).unwrap().next().is_some(),
        false => found.len() > 0,
    };
    match (found.is_dir(), is_full) {
        (true, false) => Under::Dir,
        (true, true) => Under::FullDir,
        (false, false) => Under::File,
        (false, true) => Under::FullFile,
    }
}

fn look_at_device(machine: &Machine, world: &World, volume: usize) {
    let Device::There { locked, .. } = world.volumes[volume].device else {
        return;
    };
    let device = machine.loops[volume].as_ref().unwrap();
    assert_eq!(backing_file(device), Some(machine.image(volume)));
    let is = attribute(device, "ro").as_deref() == Some("1");
    assert_eq!(is, locked, "whether volume {volume} takes no writes");
}

fn look_at_content(machine: &mut Machine, world: &World, volume: usize) {
    let own = &world.volumes[volume];
    let image = File::open(machine.image(volume)).unwrap();
    let mut head = vec![0; 128 << 10];
    image.read_exact_at(&mut head, 0).unwrap();
    let mut letter = [0; LETTER.len()];
    image.read_exact_at(&mut letter, LETTER_AT).unwrap();
    let uuid_at = match own.fs {
        Fs::Ext4 => 1024 + 0x68,
        Fs::Xfs => 32,
        Fs::Btrfs => (64 << 10) + 32,
    };
    let (mark, small) = match own.content {
        Content::Ours { mark, small } => (mark, small),
        Content::Blank | Content::Foreign => {
            assert!(
                head.iter().all(|&byte| byte == 0),
                "volume {volume} was formatted"
            );
            let foreign = own.content == Content::Foreign;
            assert_eq!(letter == LETTER, foreign, "volume {volume} was written to");
            return;
        }
    };
    let uuid: [u8; 16] = head[uuid_at..uuid_at + 16].try_into().unwrap();
    assert_ne!(uuid, [0; 16], "volume {volume} has no filesystem");
    let before = *machine.uuids[volume].get_or_insert(uuid);
    assert_eq!(uuid, before, "volume {volume} was formatted again");
    for place in 0..PLACES {
        let is_seen = matches!(world.top(place), Some(Layer::Fs { volume: v, .. }) if v == volume);
        if !is_seen {
            continue;
        }
        let path = machine.place(place);
        let kept = fs::read(path.join("kept")).ok();
        let wanted = mark.map(|mark| vec![mark]);
        assert_eq!(kept, wanted, "what volume {volume} keeps, at place {place}");
        let size = nix::sys::statvfs::statvfs(&path).unwrap();
        let size = size.blocks() * size.fragment_size();
        let fills = !small && own.big;
        assert_eq!(
            size > own.fs.grown(),
            fills,
            "whether volume {volume} fills its disk"
        );
    }
}
