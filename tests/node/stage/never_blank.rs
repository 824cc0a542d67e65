//! Disks that are not blank: every filesystem and label that Debian can create, some that it cannot, their remains
//! after the head is wiped, and unknown data. None is formatted or changed.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::FileExt;
use std::path::Path;

use diskplugin::base::Deadline;
use diskplugin::linux::{Command, Exec, ProcessExec};
use diskplugin::model::Filesystem::{Ext4, Xfs};
use nix::unistd::{Whence, lseek};

use super::kit::{MIB, SIZE, TIMEOUT, World, is_mounted, sh};
use crate::common::shell::skip;

/// The size in bytes of the wiped head and tail.
const WIPED: u64 = 4 * MIB;

/// Contents of an image of [`SIZE`], each with a shell command: `$f` is the image, `$d` an empty directory.
const TOOLS: &str = "
ext2: mkfs.ext2 -q -F $f
ext3: mkfs.ext3 -q -F $f
ext4: mkfs.ext4 -q -F $f
ext4 with 1 KiB blocks: mkfs.ext4 -q -F -b 1024 $f
an external journal of ext4: mke2fs -q -F -O journal_dev $f
xfs: mkfs.xfs -q $f
btrfs: mkfs.btrfs -q $f
swap: mkswap $f
LUKS1: head -c 64 /dev/urandom > $d/key; cryptsetup -q luksFormat --type luks1 --iter-time 10 $f $d/key
LUKS2: head -c 64 /dev/urandom > $d/key; cryptsetup -q luksFormat --type luks2 --pbkdf pbkdf2 \
    --pbkdf-force-iterations 1000 $f $d/key
an LVM physical volume: f=$(flock /dev losetup -f --show $f); trap 'losetup -d $f' EXIT; pvcreate -ff -y $f
a GPT: sgdisk -o $f
a GPT with a partition: sgdisk -n 1:2048:0 $f
an MBR with a partition: echo '2048,,83' | sfdisk -q $f
vfat: mkfs.vfat $f
ntfs: mkfs.ntfs -Q -F -q $f
exfat: mkfs.exfat $f
f2fs: mkfs.f2fs -q $f
squashfs: echo x > $d/x; mksquashfs $d $f.new -quiet -no-progress; dd if=$f.new of=$f conv=notrunc status=none; \
    rm $f.new
erofs: echo x > $d/x; mkfs.erofs $f.new $d; dd if=$f.new of=$f conv=notrunc status=none; rm $f.new
cramfs: echo x > $d/x; mkfs.cramfs $d $f.new; dd if=$f.new of=$f conv=notrunc status=none; rm $f.new
iso9660: echo x > $d/x; genisoimage -quiet -o $f.new $d; dd if=$f.new of=$f conv=notrunc status=none; rm $f.new
udf: mkudffs $f
bcache: make-bcache -B $f
jfs: mkfs.jfs -q $f
reiserfs: mkfs.reiserfs -qff $f
nilfs2: mkfs.nilfs2 -q $f
minix: mkfs.minix $f
bfs: mkfs.bfs $f
random bytes: dd if=/dev/urandom of=$f bs=1M count=8 conv=notrunc status=none
";

type Layout = fn(&File);

/// Contents whose documented layout is written, because a tool requires kernel support that may be missing (md, ZFS).
const LAYOUTS: &[(&str, Layout)] = &[
    ("md 0.90", md_0_90),
    ("md 1.0", |image| md_1(image, (SIZE / 512 - 16) & !7)),
    ("md 1.1", |image| md_1(image, 0)),
    ("md 1.2", |image| md_1(image, 8)),
    ("zfs", zfs),
    ("an Oracle ASM disk", |image| put(image, 32, b"ORCLDISK")),
    ("a Ceph BlueStore", |image| put(image, 0, b"bluestore block device\n")),
    ("text at 1 MiB", |image| put(image, MIB, b"foreign data")),
    ("one byte in the head", |image| put(image, WIPED - 1, b"x")),
    ("one byte at the very end", |image| put(image, SIZE - 1, b"x")),
    ("data only in the last MiB", |image| put(image, SIZE - MIB, b"x")),
    ("data only in a sample in the middle", |image| {
        put(image, SIZE / 2, b"x");
    }),
    ("data only in the first sample after the head", |image| {
        put(image, SIZE / 256 * 4 + 5, b"x");
    }),
    ("data only in the last sample", |image| {
        put(image, SIZE / 256 * 250 + 5, b"x");
    }),
];

/// Content that is detected after the head, or head and tail, are wiped.
const DETECTED_WITHOUT_ENDS: &[&str] = &["ext2", "ext3", "ext4", "ext4 with 1 KiB blocks", "xfs", "btrfs"];

/// Content whose backup at the end is detected after the head is wiped.
const DETECTED_BY_TAIL: &[&str] = &["a GPT", "a GPT with a partition", "ntfs", "zfs"];

fn put(image: &File, at: u64, bytes: &[u8]) {
    image.write_all_at(bytes, at).unwrap();
}

/// mdp_super_t of `linux/raid/md_p.h`: 64 KiB from the end, the end rounded down to 64 KiB.
fn md_0_90(image: &File) {
    let at = (SIZE & !0xFFFF) - 0x1_0000;
    for (word, value) in [(0, 0xA92B_4EFC_u32), (1, 0), (2, 90), (5, 0x1234), (9, 1)] {
        put(image, at + word * 4, &value.to_le_bytes());
    }
}

/// struct mdp_superblock_1 of `linux/raid/md_p.h` at a sector, with its checksum.
fn md_1(image: &File, sector: u64) {
    let mut sb = [0_u8; 256];
    sb[0..4].copy_from_slice(&0xA92B_4EFC_u32.to_le_bytes());
    sb[4..8].copy_from_slice(&1_u32.to_le_bytes());
    sb[16..32].copy_from_slice(b"0123456789abcdef");
    sb[72..76].copy_from_slice(&1_u32.to_le_bytes());
    sb[92..96].copy_from_slice(&2_u32.to_le_bytes());
    sb[136..144].copy_from_slice(&(SIZE / 512 - 4096).to_le_bytes());
    sb[144..152].copy_from_slice(&sector.to_le_bytes());
    let words = sb.chunks_exact(4);
    let sum: u64 = words
        .map(|word| u64::from(u32::from_le_bytes(word.try_into().unwrap())))
        .sum();
    let folded = (sum & 0xFFFF_FFFF) + (sum >> 32);
    let folded = u32::try_from(folded & 0xFFFF_FFFF).unwrap();
    sb[216..220].copy_from_slice(&folded.to_le_bytes());
    put(image, sector * 512, &sb);
}

/// Uberblocks of the four labels of a ZFS device (On-Disk Specification, section 1.2): two at each end, 256 KiB
/// each, their uberblocks from 128 KiB on.
fn zfs(image: &File) {
    for label in [0, 256 << 10, SIZE - (512 << 10), SIZE - (256 << 10)] {
        for uberblock in 0..8 {
            let at = label + (128 << 10) + uberblock * 1024;
            put(image, at, &0x00BA_B10C_u64.to_le_bytes());
            put(image, at + 8, &5000_u64.to_le_bytes());
        }
    }
}

/// Creates the content. Returns false and prints the reason if the tool is not installed.
async fn create_content(name: &str, line: &str, image: &Path, dir: &Path) -> bool {
    let script = format!("d={}; f={}; {line}", dir.display(), image.display());
    let command = Command::new("sh").args(["-ec", &script]);
    let output = ProcessExec.run(&command, Deadline::after(TIMEOUT)).await.unwrap();
    if output.code == Some(127) {
        return skip(&format!("{name} of the corpus"), output.stderr.trim());
    }
    assert_eq!(output.code, Some(0), "{name}: {}", output.stderr);
    true
}

fn open(image: &Path) -> File {
    fs::OpenOptions::new().write(true).open(image).unwrap()
}

/// Overwrites the head and optionally the tail with zeros, as a manual wipe does.
fn wipe(image: &Path, end: bool) {
    let file = open(image);
    let zeros = vec![0; usize::try_from(WIPED).unwrap()];
    put(&file, 0, &zeros);
    if end {
        put(&file, SIZE - WIPED, &zeros);
    }
}

/// A hash of the offsets and bytes of all nonzero blocks of a detached image.
fn fingerprint(image: &Path) -> u64 {
    let file = File::open(image).unwrap();
    let mut hasher = DefaultHasher::new();
    let mut at = 0;
    let mut block = vec![0; 4096];
    // ENXIO: no data after this offset.
    while let Ok(data) = lseek(&file, at, Whence::SeekData) {
        let end = lseek(&file, data, Whence::SeekHole).unwrap();
        let (mut place, end) = (u64::try_from(data).unwrap(), u64::try_from(end).unwrap());
        while place < end {
            let length = usize::try_from((end - place).min(4096)).unwrap();
            file.read_exact_at(&mut block[..length], place).unwrap();
            if block[..length].iter().any(|&byte| byte != 0) {
                (place, &block[..length]).hash(&mut hasher);
            }
            place += u64::try_from(length).unwrap();
        }
        at = i64::try_from(end).unwrap();
    }
    hasher.finish()
}

/// Stages the image, which must fail because of its content and leave it unchanged.
async fn check_rejected(name: &str, world: &World) {
    let before = fingerprint(&world.image);
    world.attach().await;
    // The same type would be mounted, and ext3 and ext2 as ext4.
    let filesystem = if name.starts_with("ext") && !name.contains("wiped") {
        Xfs
    } else {
        Ext4
    };
    let error = world.stage(filesystem).await.unwrap_err();
    let is_ambiguous = error.starts_with("HOST_ERROR") && error.contains("is ambiguous");
    assert!(error.starts_with("FOREIGN_DATA") || is_ambiguous, "{name}: {error}");
    assert!(!is_mounted(&world.path("staging")), "{name}");
    assert_eq!(world.format_records(), 0, "{name}");
    world.detach().await;
    assert_eq!(fingerprint(&world.image), before, "{name}");
    println!("rejected and unchanged: {name}");
}

/// Asserts that the content of the image is not formatted, also after its ends are wiped if it is detected then.
async fn check_all_rejected(name: &str, world: &World) {
    check_rejected(name, world).await;
    for end in [false, true] {
        if DETECTED_WITHOUT_ENDS.contains(&name) || (!end && DETECTED_BY_TAIL.contains(&name)) {
            wipe(&world.image, end);
            check_rejected(&format!("{name}, wiped, including its tail: {end}"), world).await;
        }
    }
}

#[tokio::test]
async fn disks_with_content_are_not_formatted() {
    for (name, line) in TOOLS.trim().lines().map(|row| row.split_once(": ").unwrap()) {
        let Some(world) = World::detached().await else { return };
        let dir = world.path("files");
        fs::create_dir(&dir).unwrap();
        if create_content(name, line, &world.image, &dir).await {
            check_all_rejected(name, &world).await;
        }
    }
    for (name, write) in LAYOUTS {
        let Some(world) = World::detached().await else { return };
        write(&open(&world.image));
        check_all_rejected(name, &world).await;
    }
}

#[tokio::test]
async fn a_restored_disk_is_mounted_and_not_formatted() {
    for filesystem in [Ext4, Xfs] {
        let Some(world) = World::new().await else { return };
        world.stage(filesystem).await.unwrap();
        fs::write(world.path("staging/file"), "precious").unwrap();
        world.unstage().await;
        world.detach().await;
        let image = &world.image;
        let mut head = vec![0; usize::try_from(WIPED).unwrap()];
        File::open(image).unwrap().read_exact_at(&mut head, 0).unwrap();
        wipe(image, false);
        check_rejected(&format!("{filesystem}, wiped after use"), &world).await;
        put(&open(image), 0, &head);
        let copy = world.path("copy");
        sh(&format!(
            "mv {} {1}; cp --sparse=always {1} {0}",
            image.display(),
            copy.display()
        ))
        .await;
        world.attach().await;
        world.stage(filesystem).await.unwrap();
        let file = fs::read_to_string(world.path("staging/file")).unwrap();
        assert_eq!(file, "precious");
        world.unstage().await;
        world.detach().await;
    }
}
