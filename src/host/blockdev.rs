//! What is on a device. "Blank" is never a guess: a low-level probe must know nothing on it, and its
//! head, its tail and samples between them must read as zero. Whatever fails or contradicts itself is an error.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::exec::{Command, Output};
use super::filesystem::stated_size;
use super::samples::{SAMPLE, places};
use crate::model::{Bytes, Filesystem};

/// How much of the start must be zero on a blank disk.
const HEAD: u64 = 4 << 20;

/// How much of the end must be zero on a blank disk: some formats live there.
const TAIL: u64 = 1 << 20;

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
    /// Something that the driver does not mount: a partition table, another filesystem, a volume of
    /// a volume manager, bytes that nobody knows.
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
    /// The first bytes.
    pub(super) head: Vec<u8>,
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
    let head = read_at(&mut file, 0, HEAD.min(size.0))?;
    let mut first_data = first(&head, 0);
    let tail_start = size.0.saturating_sub(TAIL);
    let samples = places(size).into_iter().map(|place| (place, SAMPLE));
    let tail = (tail_start, size.0 - tail_start);
    for (start, length) in samples.chain([tail]) {
        if first_data.is_some() {
            break;
        }
        first_data = first(&read_at(&mut file, start, length)?, start);
    }
    Ok(Survey { head, first_data })
}

/// The offset of the first byte that is not zero in what begins at an offset.
fn first(bytes: &[u8], start: u64) -> Option<u64> {
    let at = bytes.iter().position(|&byte| byte != 0)?;
    Some(start + u64::try_from(at).ok()?)
}

/// Reads the head only; the device may be mounted.
pub(super) fn read_head(device: &Path, size: Bytes) -> io::Result<Vec<u8>> {
    read_at(&mut File::open(device)?, 0, HEAD.min(size.0))
}

fn read_at(file: &mut File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(length).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
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
        (Some(2), Some(at)) => Ok(Content::Foreign {
            what: format!("data of an unknown kind, from byte {at}"),
        }),
        (Some(0), None) => Err(format!(
            "blkid finds {:?} where every byte reads as zero",
            probe.stdout.trim()
        )),
        (Some(0), Some(_)) => found(&probe.stdout, &survey.head),
        (Some(8), _) => Err("blkid finds more than one kind of content".to_owned()),
        (code, _) => Err(format!(
            "blkid ended with code {code:?}: {}",
            probe.stderr.trim()
        )),
    }
}

fn found(export: &str, head: &[u8]) -> Result<Content, String> {
    let value = |key: &str| {
        export
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    };
    let content = match (value("TYPE"), value("PTTYPE")) {
        (Some(kind), Some(table)) => {
            return Err(format!(
                "blkid finds both {kind} and a {table} partition table"
            ));
        }
        (None, Some(table)) => Content::Foreign {
            what: format!("a {table} partition table"),
        },
        (Some(kind), None) => {
            let known = Filesystem::ALL
                .into_iter()
                .find(|filesystem| filesystem.as_str() == kind)
                .filter(|_| value("USAGE") == Some("filesystem"));
            match known {
                Some(filesystem) => Content::Filesystem {
                    filesystem,
                    size: stated_size(filesystem, head),
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
            head: Vec::new(),
            first_data,
        }
    }

    #[test]
    fn blank_takes_both_proofs() {
        let nothing = output(Some(2), "", "");
        assert_eq!(judge(&nothing, &found_at(None)), Ok(Content::Blank));
        assert_eq!(
            judge(&nothing, &found_at(Some(7))),
            Ok(Content::Foreign {
                what: "data of an unknown kind, from byte 7".to_owned()
            })
        );
    }

    #[test]
    fn every_failure_of_the_probe_is_an_error_and_never_blank() {
        for probe in [
            output(Some(2), "", "error: /dev/vdb: Input/output error"),
            output(Some(8), "", ""),
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
    fn two_contents_at_once_are_an_error() {
        let both = output(Some(0), "TYPE=ext4\nUSAGE=filesystem\nPTTYPE=dos\n", "");
        assert!(judge(&both, &found_at(Some(0))).is_err());
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
        for at in [0, HEAD - 1, sampled, size - TAIL, size - 1] {
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
