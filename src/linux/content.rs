//! Detects the content of a device. A device is blank only if a low-level probe finds nothing, and its head, its tail
//! and samples between them read as zero. Failures and contradictions are errors.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use nix::fcntl::{OFlag, PosixFadviseAdvice, posix_fadvise};

use super::blocking::blocking;
use super::device::{Device, check_number};
use super::error::{HostError, IoResult, Result};
use super::exclusive;
use super::exec::{Command, Exec, ExecFailure, Output};
use super::samples::{chunks, first_nonzero, ranges, read_at, superblock_area};
use super::superblock::Superblocks;
use crate::base::Deadline;
use crate::model::{Bytes, Filesystem};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Blank,
    Filesystem {
        filesystem: Filesystem,
        /// The size in the superblock.
        size: Option<Bytes>,
    },
    /// A filesystem whose superblock shows that mkfs was interrupted. Not all filesystems
    /// record this, see [`Content::Unknown`].
    IncompleteFormat {
        filesystem: Filesystem,
    },
    /// Unidentified data. An interrupted mkfs may have written it.
    Unknown {
        offset: u64,
    },
    /// Content that the driver does not mount: a partition table, an unsupported filesystem, or a
    /// physical volume of a volume manager.
    Unsupported {
        description: String,
    },
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => f.write_str("nothing"),
            Self::Filesystem { filesystem, .. } => write!(f, "a filesystem of type {filesystem}"),
            Self::IncompleteFormat { filesystem } => {
                write!(f, "an incomplete filesystem of type {filesystem}")
            }
            Self::Unknown { offset } => write!(f, "unidentified data at byte {offset}"),
            Self::Unsupported { description } => f.write_str(description),
        }
    }
}

/// The content of an unused device, from the probe and the scan. An unclear result is an error.
pub(super) async fn read(exec: &dyn Exec, device: &Device, deadline: Deadline) -> Result<Content> {
    let chosen = device.clone();
    let scan = blocking(deadline, "read", &device.path, move |path| {
        check_number(&chosen)?;
        scan(path, chosen.size).io_context("read", path)
    });
    // The low-level probe bypasses the cache and prints values as lines.
    let command = Command::new("blkid").args(["-p", "-o", "export", "--"]);
    let command = command.arg(&device.path);
    let (scan, probe) = tokio::join!(scan, exec.run(&command, deadline));
    let scan = scan?;
    let probe = probe.map_err(|source| match source.failure {
        ExecFailure::Deadline => HostError::timed_out("probe", &device.path),
        _ => HostError::io("probe", &device.path, io::Error::other(source)),
    })?;
    classify(&probe, &scan).map_err(|reason| HostError::AmbiguousContent {
        device: device.path.clone(),
        reason,
    })
}

#[derive(Debug)]
pub(super) struct DeviceScan {
    pub(super) superblocks: Superblocks,
    /// Offset of the first nonzero byte in the head, a sample or the tail.
    pub(super) first_data: Option<u64>,
}

/// Reads the superblock area, and if it is zero also head, samples and tail, in this order, up to the first nonzero
/// byte. The device is opened exclusively (`O_EXCL`), which fails with `EBUSY` while it is mounted or part of another
/// device.
pub(super) fn scan(device: &Path, size: Bytes) -> io::Result<DeviceScan> {
    let file = exclusive::open(OpenOptions::new().read(true), OFlag::empty(), device)?;
    let head = superblock_area(&file, size)?;
    let superblocks = Superblocks::parse(&head);
    let mut first_data = first_nonzero(&head, 0)?;
    drop(head);
    if first_data.is_none() {
        first_data = first_data_in_ranges(&file, size)?;
    }
    Ok(DeviceScan {
        superblocks,
        first_data,
    })
}

fn first_data_in_ranges(file: &File, size: Bytes) -> io::Result<Option<u64>> {
    // Read ahead, so that the reads do not each wait for a round trip to the disk.
    for (start, length) in ranges(size) {
        let (Ok(start), Ok(length)) = (start.try_into(), length.try_into()) else {
            continue;
        };
        posix_fadvise(file, start, length, PosixFadviseAdvice::POSIX_FADV_WILLNEED)?;
    }
    let mut buffer = Vec::new();
    for (start, length) in chunks(size) {
        read_at(file, start, length, &mut buffer)?;
        let first_data = first_nonzero(&buffer, start)?;
        if first_data.is_some() {
            return Ok(first_data);
        }
    }
    Ok(None)
}

pub(super) fn read_superblocks(device: &Device) -> Result<Superblocks> {
    File::open(&device.path)
        .and_then(|file| superblock_area(&file, device.size))
        .map(|head| Superblocks::parse(&head))
        .io_context("read", &device.path)
}

/// Combines the results of probe and scan.
///
/// # Errors
/// The reason why the content is ambiguous.
pub(super) fn classify(probe: &Output, scan: &DeviceScan) -> std::result::Result<Content, String> {
    match (probe.code, scan.first_data) {
        // blkid(8): 2 means both "nothing found" and "cannot read", so it is not sufficient alone.
        (Some(2), _) if !probe.stderr.trim().is_empty() => Err(format!("blkid reports: {}", probe.stderr.trim())),
        (Some(2), None) => Ok(Content::Blank),
        (Some(2), Some(offset)) => Ok(match scan.superblocks.unfinished {
            Some(filesystem) => Content::IncompleteFormat { filesystem },
            None => Content::Unknown { offset },
        }),
        (Some(0), None) => Err(format!(
            "blkid finds {:?} where every byte reads as zero",
            probe.stdout.trim()
        )),
        (Some(0), Some(_)) => found(&probe.stdout, &scan.superblocks),
        (Some(8), _) => Ok(Content::Unsupported {
            description: "multiple signatures according to blkid".to_owned(),
        }),
        (code, _) => Err(format!("blkid failed with exit code {code:?}: {}", probe.stderr.trim())),
    }
}

fn found(export: &str, superblocks: &Superblocks) -> std::result::Result<Content, String> {
    let value = |key: &str| {
        let mut lines = export.lines();
        lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    };
    let unsupported = |description| Ok(Content::Unsupported { description });
    let kind = match (value("TYPE"), value("PTTYPE")) {
        (Some(kind), None) => kind,
        // One of the two may be stale; only an operator can decide which.
        (Some(kind), Some(table)) => return unsupported(format!("both {kind} and a {table} partition table")),
        (None, Some(table)) => return unsupported(format!("a {table} partition table")),
        (None, None) => return Err(format!("blkid finds neither type nor table: {:?}", export.trim())),
    };
    // The kernel mounts ext2, which is ext4 without its features, as ext4, but not as ext3.
    let name = if kind == "ext2" { "ext4" } else { kind };
    let usage = value("USAGE");
    match Filesystem::ALL.into_iter().find(|known| known.as_str() == name) {
        // blkid also accepts an xfs that is incomplete according to its superblock.
        Some(filesystem) if usage == Some("filesystem") && superblocks.unfinished == Some(filesystem) => {
            Ok(Content::IncompleteFormat { filesystem })
        }
        Some(filesystem) if usage == Some("filesystem") => {
            let size = superblocks.size(filesystem);
            Ok(Content::Filesystem { filesystem, size })
        }
        Some(_) | None => unsupported(format!("{kind} ({})", usage.unwrap_or("of unknown usage"))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use super::*;
    use crate::linux::samples::{CHUNK, HEAD, SUPERBLOCKS, TAIL};

    fn output(code: Option<i32>, stdout: &str, stderr: &str) -> Output {
        Output {
            code,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        }
    }

    fn scan_with(first_data: Option<u64>) -> DeviceScan {
        DeviceScan {
            superblocks: Superblocks::default(),
            first_data,
        }
    }

    #[test]
    fn blank_requires_probe_and_scan() {
        let nothing = output(Some(2), "", "");
        assert_eq!(classify(&nothing, &scan_with(None)), Ok(Content::Blank));
        assert_eq!(
            classify(&nothing, &scan_with(Some(7))),
            Ok(Content::Unknown { offset: 7 })
        );
    }

    #[test]
    fn an_incomplete_filesystem_is_never_reported_as_complete() {
        let mut xfs = b"XFSB".to_vec();
        xfs.resize(SUPERBLOCKS.try_into().unwrap(), 0);
        let classified = |probe: &Output, head: &[u8]| {
            let scan = DeviceScan {
                superblocks: Superblocks::parse(head),
                first_data: Some(0),
            };
            classify(probe, &scan).unwrap().to_string()
        };
        let export = output(Some(0), "TYPE=xfs\nUSAGE=filesystem\n", "");
        assert_eq!(classified(&export, &xfs), "a filesystem of type xfs");
        xfs[126] = 1;
        assert_eq!(classified(&export, &xfs), "an incomplete filesystem of type xfs");
        let mut btrfs = vec![0; SUPERBLOCKS.try_into().unwrap()];
        btrfs[65_600..65_608].copy_from_slice(b"!BHRfS_M");
        assert_eq!(
            classified(&output(Some(2), "", ""), &btrfs),
            "an incomplete filesystem of type btrfs"
        );
    }

    #[test]
    fn a_failed_probe_is_an_error_and_never_blank() {
        for probe in [
            output(Some(2), "", "error: /dev/vdb: Input/output error"),
            output(Some(4), "", "usage"),
            output(Some(1), "", ""),
            output(None, "", ""),
            output(Some(0), "", ""),
            output(Some(0), "TYPE=ext4\nUSAGE=filesystem", ""),
        ] {
            assert!(classify(&probe, &scan_with(None)).is_err(), "{probe:?}");
        }
    }

    #[test]
    fn multiple_signatures_are_unsupported() {
        for (probe, description) in [
            (
                output(Some(0), "TYPE=xfs\nUSAGE=filesystem\nPTTYPE=dos\n", ""),
                "both xfs and a dos partition table",
            ),
            (output(Some(8), "", ""), "multiple signatures according to blkid"),
        ] {
            let content = classify(&probe, &scan_with(Some(0))).unwrap();
            let description = description.to_owned();
            assert_eq!(content, Content::Unsupported { description });
        }
    }

    #[test]
    fn other_signatures_are_unsupported() {
        for (export, what) in [
            ("PTUUID=1\nPTTYPE=gpt\n", "a gpt partition table"),
            ("TYPE=LVM2_member\nUSAGE=raid\n", "LVM2_member (raid)"),
            ("TYPE=vfat\nUSAGE=filesystem\n", "vfat (filesystem)"),
            ("TYPE=ext4\nUSAGE=other\n", "ext4 (other)"),
            ("TYPE=XFS\nUSAGE=filesystem\n", "XFS (filesystem)"),
        ] {
            let content = classify(&output(Some(0), export, ""), &scan_with(Some(0)));
            assert_eq!(content.unwrap().to_string(), what);
        }
    }

    #[test]
    fn ext2_is_mounted_as_ext4() {
        let export = output(Some(0), "TYPE=ext2\nUSAGE=filesystem\n", "");
        let content = classify(&export, &scan_with(Some(0))).unwrap();
        let (filesystem, size) = (Filesystem::Ext4, None);
        assert_eq!(content, Content::Filesystem { filesystem, size });
    }

    #[test]
    fn a_single_nonzero_byte_in_head_sample_or_tail_is_found() {
        let size = 16 << 20;
        let sampled = 8193 << 10;
        for at in [0, CHUNK, HEAD - 1, sampled, size - TAIL, size - 1] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.as_file().set_len(size).unwrap();
            file.seek(SeekFrom::Start(at)).unwrap();
            file.write_all(&[1]).unwrap();
            let scan = scan(file.path(), Bytes(size)).unwrap();
            assert_eq!(scan.first_data, Some(at));
        }
    }

    #[test]
    fn a_disk_of_zeroes_has_no_data() {
        for size in [0, 512, 4096, 4 << 30] {
            let file = tempfile::NamedTempFile::new().unwrap();
            file.as_file().set_len(size).unwrap();
            let scan = scan(file.path(), Bytes(size)).unwrap();
            assert_eq!(scan.first_data, None, "{size}");
        }
    }

    /// The file ends after the superblock area, so that any other read would fail.
    #[test]
    fn samples_are_read_only_if_the_superblock_area_is_zero() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"XFSB").unwrap();
        file.as_file().set_len(SUPERBLOCKS).unwrap();
        let scan = scan(file.path(), Bytes(1 << 40)).unwrap();
        assert_eq!(scan.first_data, Some(0));
    }

    #[test]
    fn a_device_shorter_than_its_size_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        assert!(scan(file.path(), Bytes(2 << 20)).is_err());
    }
}
