//! What is on a device. "Blank" is never a guess: a low-level probe must know nothing on it, and its
//! head, its tail and samples between them must read as zero. Whatever fails or contradicts itself is an error.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::exec::{Command, Output};
use super::samples::{SAMPLE, places};
use super::superblock::Stated;
use crate::model::{Bytes, Filesystem};

/// How much of the start must be zero on a blank disk.
const HEAD: u64 = 4 << 20;

/// How much of the end must be zero on a blank disk: some formats live there.
const TAIL: u64 = 1 << 20;

/// How much is read at once. Many volumes are staged at the same time, and what each holds adds up.
pub(super) const CHUNK: u64 = 64 << 10;

/// Where the superblock that lies farthest inside begins, and how much of it counts (btrfs).
const SUPERBLOCKS: u64 = CHUNK + (4 << 10);

/// What a device holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Nothing, proven.
    Blank,
    /// A filesystem that the driver knows.
    Filesystem {
        /// Its type.
        filesystem: Filesystem,
        /// The size that it states.
        size: Option<Bytes>,
    },
    /// A filesystem whose making was cut off: it says so itself. Not all of them do, see
    /// [`Content::Unknown`].
    Unfinished {
        /// Its type.
        filesystem: Filesystem,
    },
    /// Bytes that nobody knows. A mkfs that was cut off may have left them.
    Unknown {
        /// Where the first one was found.
        at: u64,
    },
    /// Something that the driver does not mount: a partition table, another filesystem, a volume of
    /// a volume manager.
    Foreign {
        /// In words.
        what: String,
    },
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => f.write_str("nothing"),
            Self::Filesystem { filesystem, .. } => write!(f, "a filesystem of type {filesystem}"),
            Self::Unfinished { filesystem } => {
                write!(
                    f,
                    "a filesystem of type {filesystem} whose making was cut off"
                )
            }
            Self::Unknown { at } => write!(f, "data of an unknown kind, from byte {at}"),
            Self::Foreign { what } => f.write_str(what),
        }
    }
}

/// The low-level probe: no cache, no look at partitions' names, values as lines.
pub(super) fn probe_command(device: &Path) -> Command {
    Command::new("blkid")
        .args(["-p", "-o", "export", "--"])
        .arg(device)
}

/// What our own read found.
#[derive(Debug)]
pub(super) struct Survey {
    /// What the superblocks state that are there.
    pub(super) stated: Stated,
    /// Offset of the first byte that is not zero, in the head, a sample or the tail.
    pub(super) first_data: Option<u64>,
}

/// Reads head, samples and tail, in this order and up to the first that is not zero. The device is opened for exclusive use, which the kernel refuses while it
/// is mounted or part of something else.
pub(super) fn survey(device: &Path, size: Bytes) -> io::Result<Survey> {
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(nix::fcntl::OFlag::O_EXCL.bits())
        .open(device)?;
    let ranges = ranges(size);
    // One after the other the reads would take as many round trips to the disk.
    for &(start, length) in &ranges {
        let (Ok(start), Ok(length)) = (start.try_into(), length.try_into()) else {
            continue;
        };
        posix_fadvise(
            &file,
            start,
            length,
            PosixFadviseAdvice::POSIX_FADV_WILLNEED,
        )?;
    }
    let stated = stated(&mut file, size)?;
    let mut buffer = Vec::new();
    let mut first_data = None;
    for (start, length) in ranges {
        first_data = first(&mut file, start, length, &mut buffer)?;
        if first_data.is_some() {
            break;
        }
    }
    Ok(Survey { stated, first_data })
}

/// Whether no superblock can be at the beginning of a device.
pub(super) fn begins_blank(device: &mut File, size: Bytes) -> io::Result<bool> {
    let mut head = Vec::new();
    read_at(device, 0, SUPERBLOCKS.min(size.0), &mut head)?;
    Ok(first_of(&head).is_none())
}

/// All that is read to prove a disk blank: start and length of each range, in order. They may overlap.
pub(super) fn ranges(size: Bytes) -> Vec<(u64, u64)> {
    let tail = size.0.saturating_sub(TAIL);
    let samples = places(size).into_iter().map(|place| (place, SAMPLE));
    [(0, HEAD.min(size.0))]
        .into_iter()
        .chain(samples)
        .chain([(tail, size.0 - tail)])
        .collect()
}

/// The offset of the first byte that is not zero in a stretch, which is read piece by piece.
fn first(
    file: &mut File,
    start: u64,
    length: u64,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<u64>> {
    let end = start + length;
    let mut at = start;
    while at < end {
        let piece = CHUNK.min(end - at);
        read_at(file, at, piece, buffer)?;
        if let Some(place) = first_of(buffer) {
            return Ok(Some(at + u64::try_from(place).map_err(io::Error::other)?));
        }
        at += piece;
    }
    Ok(None)
}

/// The place of the first byte that is not zero. Blocks are compared whole: a look at each byte takes a
/// hundred times as long where nothing is optimised.
fn first_of(bytes: &[u8]) -> Option<usize> {
    const ZEROES: [u8; 4096] = [0; 4096];
    let blocks = bytes.chunks(ZEROES.len());
    let before = blocks.take_while(|block| **block == ZEROES[..block.len()]);
    let start: usize = before.map(<[u8]>::len).sum();
    let place = bytes[start..].iter().position(|&byte| byte != 0)?;
    Some(start + place)
}

/// What the superblocks on a device state; it may be mounted.
pub(super) fn read_stated(device: &Path, size: Bytes) -> io::Result<Stated> {
    stated(&mut File::open(device)?, size)
}

fn stated(file: &mut File, size: Bytes) -> io::Result<Stated> {
    let mut head = Vec::new();
    read_at(file, 0, SUPERBLOCKS.min(size.0), &mut head)?;
    Ok(Stated::of(&head))
}

fn read_at(file: &mut File, at: u64, length: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.resize(usize::try_from(length).map_err(io::Error::other)?, 0);
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(buffer)
}

/// Judges probe and read together.
///
/// # Errors
/// Why it cannot be told, in words.
pub(super) fn judge(probe: &Output, survey: &Survey) -> Result<Content, String> {
    match (probe.code, survey.first_data) {
        // blkid(8): 2 is "nothing found" and also "cannot read", so it proves nothing alone.
        (Some(2), _) if !probe.stderr.trim().is_empty() => {
            Err(format!("blkid says: {}", probe.stderr.trim()))
        }
        (Some(2), None) => Ok(Content::Blank),
        (Some(2), Some(at)) => Ok(match survey.stated.unfinished {
            Some(filesystem) => Content::Unfinished { filesystem },
            None => Content::Unknown { at },
        }),
        (Some(0), None) => Err(format!(
            "blkid finds {:?} where every byte reads as zero",
            probe.stdout.trim()
        )),
        (Some(0), Some(_)) => found(&probe.stdout, &survey.stated),
        (Some(8), _) => Ok(Content::Foreign {
            what: "more than one kind of content, as blkid finds".to_owned(),
        }),
        (code, _) => Err(format!(
            "blkid ended with code {code:?}: {}",
            probe.stderr.trim()
        )),
    }
}

fn found(export: &str, stated: &Stated) -> Result<Content, String> {
    let value = |key: &str| {
        export
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    };
    let content = match (value("TYPE"), value("PTTYPE")) {
        // One of the two may be old, and nobody but a person can tell which.
        (Some(kind), Some(table)) => Content::Foreign {
            what: format!("both {kind} and a {table} partition table"),
        },
        (None, Some(table)) => Content::Foreign {
            what: format!("a {table} partition table"),
        },
        (Some(kind), None) => {
            let known = Filesystem::ALL
                .into_iter()
                .find(|filesystem| filesystem.as_str() == kind)
                .filter(|_| value("USAGE") == Some("filesystem"));
            match known {
                // blkid takes an xfs for whole whose superblock says that it is not.
                Some(filesystem) if stated.unfinished == Some(filesystem) => {
                    Content::Unfinished { filesystem }
                }
                Some(filesystem) => Content::Filesystem {
                    filesystem,
                    size: stated.size(filesystem),
                },
                None => Content::Foreign {
                    what: format!("{kind} ({})", value("USAGE").unwrap_or("of unknown usage")),
                },
            }
        }
        (None, None) => {
            return Err(format!(
                "blkid finds neither type nor table: {:?}",
                export.trim()
            ));
        }
    };
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn output(code: Option<i32>, stdout: &str, stderr: &str) -> Output {
        Output {
            code,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        }
    }

    fn found_at(first_data: Option<u64>) -> Survey {
        Survey {
            stated: Stated::default(),
            first_data,
        }
    }

    #[test]
    fn blank_takes_both_proofs() {
        let nothing = output(Some(2), "", "");
        assert_eq!(judge(&nothing, &found_at(None)), Ok(Content::Blank));
        assert_eq!(
            judge(&nothing, &found_at(Some(7))),
            Ok(Content::Unknown { at: 7 })
        );
    }

    #[test]
    fn a_filesystem_that_says_that_it_is_unfinished_is_never_taken_for_whole() {
        let mut xfs = b"XFSB".to_vec();
        xfs.resize(SUPERBLOCKS.try_into().unwrap(), 0);
        let judged = |probe: &Output, head: &[u8]| {
            let survey = Survey {
                stated: Stated::of(head),
                first_data: Some(0),
            };
            judge(probe, &survey).unwrap().to_string()
        };
        let export = output(Some(0), "TYPE=xfs\nUSAGE=filesystem\n", "");
        assert_eq!(judged(&export, &xfs), "a filesystem of type xfs");
        xfs[126] = 1;
        assert_eq!(
            judged(&export, &xfs),
            "a filesystem of type xfs whose making was cut off"
        );
        let mut btrfs = vec![0; SUPERBLOCKS.try_into().unwrap()];
        btrfs[65_600..65_608].copy_from_slice(b"!BHRfS_M");
        assert_eq!(
            judged(&output(Some(2), "", ""), &btrfs),
            "a filesystem of type btrfs whose making was cut off"
        );
    }

    #[test]
    fn every_failure_of_the_probe_is_an_error_and_never_blank() {
        for probe in [
            output(Some(2), "", "error: /dev/vdb: Input/output error"),
            output(Some(4), "", "usage"),
            output(Some(1), "", ""),
            output(None, "", ""),
            output(Some(0), "", ""),
            output(Some(0), "TYPE=ext4\nUSAGE=filesystem", ""),
        ] {
            assert!(judge(&probe, &found_at(None)).is_err(), "{probe:?}");
        }
    }

    #[test]
    fn two_contents_at_once_are_foreign_and_none_of_them_is_chosen() {
        for (probe, what) in [
            (
                output(Some(0), "TYPE=xfs\nUSAGE=filesystem\nPTTYPE=dos\n", ""),
                "both xfs and a dos partition table",
            ),
            (
                output(Some(8), "", ""),
                "more than one kind of content, as blkid finds",
            ),
        ] {
            let judged = judge(&probe, &found_at(Some(0))).unwrap();
            let what = what.to_owned();
            assert_eq!(judged, Content::Foreign { what });
        }
    }

    #[test]
    fn what_the_driver_does_not_mount_is_foreign() {
        for (export, what) in [
            ("PTUUID=1\nPTTYPE=gpt\n", "a gpt partition table"),
            ("TYPE=LVM2_member\nUSAGE=raid\n", "LVM2_member (raid)"),
            ("TYPE=vfat\nUSAGE=filesystem\n", "vfat (filesystem)"),
            ("TYPE=ext4\nUSAGE=other\n", "ext4 (other)"),
        ] {
            let content = judge(&output(Some(0), export, ""), &found_at(Some(0)));
            assert_eq!(content.unwrap().to_string(), what);
        }
    }

    #[test]
    fn a_single_byte_at_either_end_or_in_a_sample_is_seen() {
        let size = 16 << 20;
        let sampled = 8193 << 10;
        for at in [0, CHUNK, HEAD - 1, sampled, size - TAIL, size - 1] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.as_file().set_len(size).unwrap();
            file.seek(SeekFrom::Start(at)).unwrap();
            file.write_all(&[1]).unwrap();
            let survey = survey(file.path(), Bytes(size)).unwrap();
            assert_eq!(survey.first_data, Some(at));
        }
    }

    #[test]
    fn a_disk_of_zeroes_is_read_to_its_end_and_found_empty() {
        for size in [0, 512, 4096, 4 << 30] {
            let file = tempfile::NamedTempFile::new().unwrap();
            file.as_file().set_len(size).unwrap();
            let survey = survey(file.path(), Bytes(size)).unwrap();
            assert_eq!(survey.first_data, None, "{size}");
        }
    }

    #[test]
    fn a_device_shorter_than_it_says_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        assert!(survey(file.path(), Bytes(2 << 20)).is_err());
    }
}
