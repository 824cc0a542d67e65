//! A corpus of disks that are not blank: every filesystem and label that Debian can make, some that it cannot, what a wiped
//! head leaves of them, and bytes that nobody knows. None is ever formatted, and each is the same afterwards, byte for byte.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::FileExt;
use std::path::Path;

use diskplugin::base::Deadline;
use diskplugin::host::{Command, Exec, Processes};
use diskplugin::model::Filesystem::{Ext4, Xfs};
use nix::unistd::{Whence, lseek};

use super::kit::{AMPLE, MIB, SIZE, World, can_run, is_mounted, sh};

/// How content comes onto an image of [`SIZE`].
#[derive(Clone, Copy)]
enum By {
    /// A line of shell; `$f` is the image, `$d` an empty directory.
    Tool(&'static str),
    /// The same with `$f` a loop device, for tools that want one.
    Device(&'static str),
    /// By hand, from the documented layout, where a tool wants what is not here: the kernel's md, or ZFS.
    Hand(fn(&File)),
}

/// How many bytes at either end a clumsy wipe takes.
const WIPED: u64 = 4 * MIB;

/// Debian's tools, and the layouts that stand in for those that need more than Debian or this kernel.
const CORPUS: &[(&str, By)] = &[
    ("ext2", By::Tool("mkfs.ext2 -q -F $f")),
    ("ext3", By::Tool("mkfs.ext3 -q -F $f")),
    ("ext4", By::Tool("mkfs.ext4 -q -F $f")),
    (
        "ext4 with 1 KiB blocks",
        By::Tool("mkfs.ext4 -q -F -b 1024 $f"),
    ),
    (
        "an external journal of ext4",
        By::Tool("mke2fs -q -F -O journal_dev $f"),
    ),
    ("xfs", By::Tool("mkfs.xfs -q $f")),
    ("btrfs", By::Tool("mkfs.btrfs -q $f")),
    ("swap", By::Tool("mkswap $f")),
    (
        "LUKS1",
        By::Tool(
            "head -c 64 /dev/urandom > $d/key; cryptsetup -q luksFormat --type luks1 --iter-time 10 $f $d/key",
        ),
    ),
    (
        "LUKS2",
        By::Tool(
            "head -c 64 /dev/urandom > $d/key; cryptsetup -q luksFormat --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 $f $d/key",
        ),
    ),
    ("an LVM physical volume", By::Device("pvcreate -ff -y $f")),
    ("a GPT", By::Tool("sgdisk -o $f")),
    ("a GPT with a partition", By::Tool("sgdisk -n 1:2048:0 $f")),
    (
        "an MBR with a partition",
        By::Tool("echo '2048,,83' | sfdisk -q $f"),
    ),
    ("vfat", By::Tool("mkfs.vfat $f")),
    ("ntfs", By::Tool("mkfs.ntfs -Q -F -q $f")),
    ("exfat", By::Tool("mkfs.exfat $f")),
    ("f2fs", By::Tool("mkfs.f2fs -q $f")),
    (
        "squashfs",
        By::Tool(
            "echo x > $d/x; mksquashfs $d $f.new -quiet -no-progress; dd if=$f.new of=$f conv=notrunc status=none; rm $f.new",
        ),
    ),
    (
        "erofs",
        By::Tool(
            "echo x > $d/x; mkfs.erofs $f.new $d; dd if=$f.new of=$f conv=notrunc status=none; rm $f.new",
        ),
    ),
    (
        "cramfs",
        By::Tool(
            "echo x > $d/x; mkfs.cramfs $d $f.new; dd if=$f.new of=$f conv=notrunc status=none; rm $f.new",
        ),
    ),
    (
        "iso9660",
        By::Tool(
            "echo x > $d/x; genisoimage -quiet -o $f.new $d; dd if=$f.new of=$f conv=notrunc status=none; rm $f.new",
        ),
    ),
    ("udf", By::Tool("mkudffs $f")),
    ("bcache", By::Tool("make-bcache -B $f")),
    ("jfs", By::Tool("mkfs.jfs -q $f")),
    ("reiserfs", By::Tool("mkfs.reiserfs -qff $f")),
    ("nilfs2", By::Tool("mkfs.nilfs2 -q $f")),
    ("minix", By::Tool("mkfs.minix $f")),
    ("bfs", By::Tool("mkfs.bfs $f")),
    ("md 0.90", By::Hand(md_0_90)),
    (
        "md 1.0",
        By::Hand(|image| md_1(image, (SIZE / 512 - 16) & !7)),
    ),
    ("md 1.1", By::Hand(|image| md_1(image, 0))),
    ("md 1.2", By::Hand(|image| md_1(image, 8))),
    ("zfs", By::Hand(zfs)),
    (
        "an Oracle ASM disk",
        By::Hand(|image| put(image, 32, b"ORCLDISK")),
    ),
    (
        "a Ceph BlueStore",
        By::Hand(|image| put(image, 0, b"bluestore block device\n")),
    ),
    (
        "random bytes",
        By::Tool("dd if=/dev/urandom of=$f bs=1M count=8 conv=notrunc status=none"),
    ),
    (
        "text at 1 MiB",
        By::Hand(|image| put(image, MIB, b"somebody's data")),
    ),
    (
        "one byte in the head",
        By::Hand(|image| put(image, WIPED - 1, b"x")),
    ),
    (
        "one byte at the very end",
        By::Hand(|image| put(image, SIZE - 1, b"x")),
    ),
    (
        "data only in the last MiB",
        By::Hand(|image| put(image, SIZE - MIB, b"x")),
    ),
    (
        "data only in a sample in the middle",
        By::Hand(|image| put(image, SIZE / 2, b"x")),
    ),
    (
        "data only in the first sample behind the head",
        By::Hand(|image| put(image, SIZE / 256 * 4 + 5, b"x")),
    ),
    (
        "data only in the last sample",
        By::Hand(|image| put(image, SIZE / 256 * 250 + 5, b"x")),
    ),
];

/// Of these, something is left that is found when the head is wiped, or both ends are.
const HEADLESS: &[&str] = &[
    "ext2",
    "ext3",
    "ext4",
    "ext4 with 1 KiB blocks",
    "xfs",
    "btrfs",
];

/// Of these, the spare at the end is found when the head is wiped.
const TAILED: &[&str] = &["a GPT", "a GPT with a partition", "ntfs", "zfs"];

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

/// Makes the content; false where the tool is not there, aloud.
async fn make(name: &str, by: By, image: &Path, dir: &Path) -> bool {
    let (line, loop_device) = match by {
        By::Hand(hand) => {
            let file = fs::OpenOptions::new().write(true).open(image).unwrap();
            hand(&file);
            return true;
        }
        By::Tool(line) => (line, false),
        By::Device(line) => (line, true),
    };
    let (f, d) = (image.display(), dir.display());
    let script = if loop_device {
        format!("d={d}; f=$(losetup -f --show {f}); trap 'losetup -d $f' EXIT; {line}")
    } else {
        format!("d={d}; f={f}; {line}")
    };
    let command = Command::new("sh").args(["-ec", &script]);
    let output = Processes
        .run(&command, Deadline::after(AMPLE))
        .await
        .unwrap();
    if output.code == Some(127) {
        let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        assert!(!ci, "nothing is skipped in CI: {name}: {}", output.stderr);
        eprintln!(
            "SKIPPED: {name} of the corpus because {}",
            output.stderr.trim()
        );
        return false;
    }
    assert_eq!(output.code, Some(0), "{name}: {}", output.stderr);
    true
}

/// Takes away the beginning, and the end too if it shall be, as somebody does who wants a disk empty.
fn wipe(image: &Path, end: bool) {
    let file = fs::OpenOptions::new().write(true).open(image).unwrap();
    let zeroes = vec![0; usize::try_from(WIPED).unwrap()];
    put(&file, 0, &zeroes);
    if end {
        put(&file, SIZE - WIPED, &zeroes);
    }
}

/// What is on an image that is not attached: the places and bytes of all blocks that are not zero.
fn fingerprint(image: &Path) -> u64 {
    let file = File::open(image).unwrap();
    let mut hasher = DefaultHasher::new();
    let mut at = 0;
    let mut block = vec![0; 4096];
    // ENXIO: no data from there on.
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

/// Stages the image, which must be refused for what it holds and be the same afterwards.
async fn is_refused(name: &str, world: &World) {
    let before = fingerprint(&world.image());
    world.attach().await;
    // What it holds would be mounted.
    let wanted = if name.starts_with("ext4") && !name.contains("wiped") {
        Xfs
    } else {
        Ext4
    };
    let error = world.stage(wanted).await.unwrap_err();
    let unclear = error.starts_with("HOST_ERROR") && error.contains("is unclear");
    assert!(
        error.starts_with("FOREIGN_DATA") || unclear,
        "{name}: {error}"
    );
    assert!(!is_mounted(&world.path("staging")), "{name}");
    assert_eq!(world.records(), 0, "{name}");
    world.detach().await;
    assert_eq!(fingerprint(&world.image()), before, "{name}");
    println!("refused, and unchanged: {name}");
}

#[tokio::test]
async fn no_disk_with_anything_on_it_is_ever_formatted() {
    if !can_run().await {
        return;
    }
    for (index, (name, by)) in CORPUS.iter().enumerate() {
        let world = World::new(&format!("nb{index}"), SIZE);
        let dir = world.path("files");
        fs::create_dir(&dir).unwrap();
        if !make(name, *by, &world.image(), &dir).await {
            continue;
        }
        is_refused(name, &world).await;
        for end in [false, true] {
            if HEADLESS.contains(name) || (!end && TAILED.contains(name)) {
                wipe(&world.image(), end);
                is_refused(&format!("{name}, wiped, its end too: {end}"), &world).await;
            }
        }
    }
}

#[tokio::test]
async fn a_restored_disk_is_mounted_with_its_files_and_not_formatted() {
    if !can_run().await {
        return;
    }
    for filesystem in [Ext4, Xfs] {
        let world = World::with_disk(&format!("nbrestored{filesystem}")).await;
        world.stage(filesystem).await.unwrap();
        fs::write(world.path("staging/file"), "precious").unwrap();
        world.unstage().await;
        world.detach().await;
        let image = world.image();
        let mut head = vec![0; usize::try_from(WIPED).unwrap()];
        File::open(&image)
            .unwrap()
            .read_exact_at(&mut head, 0)
            .unwrap();
        wipe(&image, false);
        is_refused(&format!("{filesystem}, wiped after use"), &world).await;
        put(
            &fs::OpenOptions::new().write(true).open(&image).unwrap(),
            0,
            &head,
        );
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
