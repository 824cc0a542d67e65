//! The mount options of each filesystem, from the kernel's admin guide (`ext4.rst`, `xfs.rst`, `btrfs`), except those that
//! risk data or affect more than the volume. Others are rejected here, because the kernel returns only EINVAL.

use super::mount_flags::{InvalidMountFlag, MountFlags, option};
use super::{Bytes, Filesystem};

/// What may stand behind the `=` of an option.
#[derive(Debug, Clone, Copy)]
enum Value {
    /// Nothing, and no `=`.
    None,
    /// A whole number from, to.
    Number(u64, u64),
    /// A power of two of bytes from, to; with k, m or g, or without.
    Size(u64, u64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Anything: a label of SELinux.
    Label,
}

use Value::{Label, None as Bare, Number, Size, Word};

type Table = &'static [(&'static str, Value)];

/// What mount(8) knows of every filesystem, and SELinux.
const GENERIC: Table = &[
    ("ro", Bare),
    ("rw", Bare),
    ("defaults", Bare),
    ("_netdev", Bare),
    ("auto", Bare),
    ("noauto", Bare),
    ("nofail", Bare),
    ("nosuid", Bare),
    ("suid", Bare),
    ("nodev", Bare),
    ("dev", Bare),
    ("noexec", Bare),
    ("exec", Bare),
    ("sync", Bare),
    ("async", Bare),
    ("dirsync", Bare),
    ("noatime", Bare),
    ("atime", Bare),
    ("nodiratime", Bare),
    ("diratime", Bare),
    ("relatime", Bare),
    ("norelatime", Bare),
    ("strictatime", Bare),
    ("nostrictatime", Bare),
    ("lazytime", Bare),
    ("nolazytime", Bare),
    ("silent", Bare),
    ("iversion", Bare),
    ("noiversion", Bare),
    ("context", Label),
    ("fscontext", Label),
    ("defcontext", Label),
    ("rootcontext", Label),
];

/// Of ext3 and ext4 alike.
const EXT: Table = &[
    ("acl", Bare),
    ("noacl", Bare),
    ("user_xattr", Bare),
    ("nouser_xattr", Bare),
    ("bsddf", Bare),
    ("minixdf", Bare),
    ("grpid", Bare),
    ("bsdgroups", Bare),
    ("nogrpid", Bare),
    ("sysvgroups", Bare),
    ("resuid", Number(0, u32::MAX as u64)),
    ("resgid", Number(0, u32::MAX as u64)),
    ("commit", Number(1, 300)),
    ("data", Word(&["ordered", "journal"])),
    ("data_err", Word(&["ignore", "abort"])),
    ("errors", Word(&["remount-ro"])),
    ("barrier", Bare),
    ("barrier", Word(&["1"])),
    ("discard", Bare),
    ("nodiscard", Bare),
    ("quota", Bare),
    ("noquota", Bare),
    ("usrquota", Bare),
    ("grpquota", Bare),
    ("noload", Bare),
    ("norecovery", Bare),
    ("stripe", Number(0, 65_536)),
];

/// Of ext4 only.
const EXT4: Table = &[
    ("prjquota", Bare),
    ("journal_checksum", Bare),
    ("nojournal_checksum", Bare),
    ("auto_da_alloc", Bare),
    ("noauto_da_alloc", Bare),
    ("delalloc", Bare),
    ("nodelalloc", Bare),
    ("max_batch_time", Number(0, 1_000_000)),
    ("min_batch_time", Number(0, 1_000_000)),
    ("journal_ioprio", Number(0, 7)),
    ("inode_readahead_blks", Size(1, 1 << 20)),
    ("dioread_lock", Bare),
    ("dioread_nolock", Bare),
    ("nodioread_nolock", Bare),
    ("block_validity", Bare),
    ("noblock_validity", Bare),
    ("max_dir_size_kb", Number(0, 1 << 22)),
    ("i_version", Bare),
    ("init_itable", Bare),
    ("init_itable", Number(0, 1_000_000)),
    ("noinit_itable", Bare),
    ("mb_optimize_scan", Number(0, 1)),
    ("prefetch_block_bitmaps", Bare),
    ("no_prefetch_block_bitmaps", Bare),
];

const XFS: Table = &[
    ("allocsize", Size(4 << 10, 1 << 30)),
    ("discard", Bare),
    ("nodiscard", Bare),
    ("grpid", Bare),
    ("bsdgroups", Bare),
    ("nogrpid", Bare),
    ("sysvgroups", Bare),
    ("filestreams", Bare),
    ("inode32", Bare),
    ("inode64", Bare),
    ("largeio", Bare),
    ("nolargeio", Bare),
    ("logbufs", Number(2, 8)),
    ("logbsize", Size(16 << 10, 256 << 10)),
    ("noalign", Bare),
    ("norecovery", Bare),
    ("nouuid", Bare),
    ("noquota", Bare),
    ("quota", Bare),
    ("uquota", Bare),
    ("usrquota", Bare),
    ("uqnoenforce", Bare),
    ("gquota", Bare),
    ("grpquota", Bare),
    ("gqnoenforce", Bare),
    ("pquota", Bare),
    ("prjquota", Bare),
    ("pqnoenforce", Bare),
    ("sunit", Number(0, 1 << 20)),
    ("swidth", Number(0, 1 << 26)),
    ("swalloc", Bare),
    ("wsync", Bare),
];

const COMPRESSIONS: &[&str] = &[
    "no", "none", "lzo", "zlib", "zlib:1", "zlib:2", "zlib:3", "zlib:4", "zlib:5", "zlib:6",
    "zlib:7", "zlib:8", "zlib:9", "zstd", "zstd:1", "zstd:2", "zstd:3", "zstd:4", "zstd:5",
    "zstd:6", "zstd:7", "zstd:8", "zstd:9", "zstd:10", "zstd:11", "zstd:12", "zstd:13", "zstd:14",
    "zstd:15",
];

const BTRFS: Table = &[
    ("acl", Bare),
    ("noacl", Bare),
    ("autodefrag", Bare),
    ("noautodefrag", Bare),
    ("barrier", Bare),
    ("clear_cache", Bare),
    ("commit", Number(1, 300)),
    ("compress", Bare),
    ("compress", Word(COMPRESSIONS)),
    ("compress-force", Bare),
    ("compress-force", Word(COMPRESSIONS)),
    ("datacow", Bare),
    ("nodatacow", Bare),
    ("datasum", Bare),
    ("nodatasum", Bare),
    ("discard", Bare),
    ("discard", Word(&["sync", "async"])),
    ("nodiscard", Bare),
    ("enospc_debug", Bare),
    ("noenospc_debug", Bare),
    ("flushoncommit", Bare),
    ("noflushoncommit", Bare),
    ("max_inline", Size(1, 64 << 10)),
    ("max_inline", Number(0, 0)),
    ("metadata_ratio", Number(0, 1000)),
    ("nologreplay", Bare),
    ("norecovery", Bare),
    ("rescan_uuid_tree", Bare),
    ("skip_balance", Bare),
    ("space_cache", Bare),
    ("space_cache", Word(&["v1", "v2"])),
    ("nospace_cache", Bare),
    ("ssd", Bare),
    ("nossd", Bare),
    ("ssd_spread", Bare),
    ("nossd_spread", Bare),
    ("thread_pool", Number(1, 256)),
    ("treelog", Bare),
    ("notreelog", Bare),
    ("user_subvol_rm_allowed", Bare),
];

/// Options that the kernel supports and the driver rejects, with the reason: an option, or an option with a value.
const REFUSED: &[(&str, &str)] = &[
    (
        "nobarrier",
        "without barriers a crash of the host can corrupt the filesystem",
    ),
    (
        "barrier=0",
        "without barriers a crash of the host can corrupt the filesystem",
    ),
    (
        "data=writeback",
        "after a crash files can hold old content of other files",
    ),
    (
        "errors=continue",
        "damage would spread while the filesystem goes on being written to",
    ),
    (
        "errors=panic",
        "one volume's damage would take the node down",
    ),
    (
        "fatal_errors",
        "one volume's damage would take the node down",
    ),
    (
        "journal_async_commit",
        "the kernel refuses it in data=ordered mode, and it weakens the journal",
    ),
    ("abort", "it ends the journal at once"),
    ("sb", "another superblock is for manual recovery"),
    (
        "rescue",
        "recovery is a manual operation, not a property of a volume",
    ),
    (
        "usebackuproot",
        "recovery is a manual operation, not a property of a volume",
    ),
    ("degraded", "a volume is one whole device"),
    ("subvol", "the volume is the whole filesystem"),
    ("subvolid", "the volume is the whole filesystem"),
    ("dax", "a cloud disk is not memory"),
    ("debug", "it floods the node's kernel log"),
    (
        "usrjquota",
        "quota is kept by the filesystem itself: use usrquota",
    ),
    (
        "grpjquota",
        "quota is kept by the filesystem itself: use grpquota",
    ),
    ("test_dummy_encryption", "it is for the kernel's own tests"),
];

/// Options that leave a journal unread, which only a mount that writes nothing survives.
const UNREPLAYED: [&str; 3] = ["noload", "norecovery", "nologreplay"];

impl MountFlags {
    /// Checks that all options are allowed for a filesystem. `read_only` is the mount's access, if known.
    ///
    /// # Errors
    /// The first unsupported or rejected option, with the reason.
    pub fn fit(
        &self,
        filesystem: Filesystem,
        read_only: Option<bool>,
    ) -> Result<(), InvalidMountFlag> {
        for flag in self.iter() {
            if let Some(reason) = unfit(flag, filesystem, read_only) {
                return Err(InvalidMountFlag {
                    flag: flag.to_owned(),
                    reason: reason.into(),
                });
            }
        }
        Ok(())
    }
}

fn tables(filesystem: Filesystem) -> [Table; 3] {
    match filesystem {
        Filesystem::Ext4 => [GENERIC, EXT, EXT4],
        Filesystem::Ext3 => [GENERIC, EXT, &[]],
        Filesystem::Xfs => [GENERIC, XFS, &[]],
        Filesystem::Btrfs => [GENERIC, BTRFS, &[]],
    }
}

fn unfit(flag: &str, filesystem: Filesystem, read_only: Option<bool>) -> Option<String> {
    let name = option(flag);
    // A comment of userspace (mount(8)).
    if name.starts_with("x-") {
        return None;
    }
    let refused = REFUSED.iter().find(|(of, _)| *of == flag || *of == name);
    if let Some((_, why)) = refused {
        return Some((*why).to_owned());
    }
    if UNREPLAYED.contains(&name) && read_only == Some(false) {
        return Some("it leaves the journal unread, which is for read-only mounts only".to_owned());
    }
    let of_fs = || tables(filesystem).into_iter().flatten();
    let mut known = of_fs().filter(|(of, _)| *of == name).peekable();
    if known.peek().is_none() {
        let mut names: Vec<_> = of_fs().map(|(of, _)| *of).collect();
        names.dedup();
        return Some(format!(
            "it is not an option of {filesystem}; allowed are {}, x-*",
            names.join(", ")
        ));
    }
    let value = flag.split_once('=').map(|(_, value)| value);
    let allowed: Vec<_> = known.map(|(_, takes)| *takes).collect();
    if allowed.iter().any(|takes| takes.admits(value)) {
        return None;
    }
    let words: Vec<_> = allowed.iter().map(Value::expected).collect();
    Some(format!(
        "{name} of {filesystem} accepts {}",
        words.join(", or ")
    ))
}

impl Value {
    fn admits(self, value: Option<&str>) -> bool {
        match (self, value) {
            (Self::None, None) => true,
            (Self::None, Some(_)) | (_, None) => false,
            (Self::Number(from, to), Some(text)) => {
                number(text).is_some_and(|n| (from..=to).contains(&n))
            }
            (Self::Size(from, to), Some(text)) => {
                size(text).is_some_and(|Bytes(n)| n.is_power_of_two() && (from..=to).contains(&n))
            }
            (Self::Word(words), Some(text)) => words.contains(&text),
            (Self::Label, Some(text)) => !text.trim_matches('"').is_empty(),
        }
    }

    fn expected(&self) -> String {
        match self {
            Self::None => "no value".to_owned(),
            Self::Number(from, to) => format!("a whole number from {from} to {to}"),
            Self::Size(from, to) => format!("a power of two from {from} to {to}"),
            Self::Word(words) => words.join(", "),
            Self::Label => "an SELinux context".to_owned(),
        }
    }
}

/// Digits and nothing else: no sign, no space.
pub(super) fn number(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// A number of bytes, with k, m or g for the powers of 1024.
pub(super) fn size(text: &str) -> Option<Bytes> {
    let unit = match text.bytes().last()?.to_ascii_lowercase() {
        b'k' => 1 << 10,
        b'm' => 1 << 20,
        b'g' => 1 << 30,
        _ => return number(text).map(Bytes),
    };
    let digits = text.get(..text.len() - 1)?;
    number(digits)?.checked_mul(unit).map(Bytes)
}

#[cfg(test)]
mod tests {
    use Filesystem::{Btrfs, Ext3, Ext4, Xfs};

    use super::*;

    fn fit(flag: &str, filesystem: Filesystem, read_only: Option<bool>) -> Result<(), String> {
        let flags = MountFlags::new([flag.to_owned()]).unwrap();
        flags
            .fit(filesystem, read_only)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn each_filesystem_takes_its_own_options_with_fitting_values() {
        for (filesystem, good, bad) in [
            (
                Ext4,
                &[
                    "commit=30",
                    "data=journal",
                    "prjquota",
                    "inode_readahead_blks=32",
                ][..],
                &[
                    "commit=0",
                    "commit=+3",
                    "commit",
                    "inode_readahead_blks=3",
                    "logbsize=64k",
                    "noatime=1",
                ][..],
            ),
            (Ext3, &["acl", "data=ordered"], &["delalloc", "prjquota"]),
            (
                Xfs,
                &["logbsize=64k", "allocsize=1g", "pquota"],
                &["logbsize=65k", "allocsize=2g", "barrier", "compress"],
            ),
            (
                Btrfs,
                &[
                    "compress",
                    "compress=zstd:3",
                    "discard=async",
                    "max_inline=0",
                ],
                &["compress=zstd:99", "discard=later", "data=ordered"],
            ),
        ] {
            for flag in good {
                assert_eq!(fit(flag, filesystem, None), Ok(()), "{filesystem} {flag}");
            }
            for flag in bad {
                assert!(fit(flag, filesystem, None).is_err(), "{filesystem} {flag}");
            }
        }
    }

    #[test]
    fn what_is_generic_fits_all_of_them() {
        for filesystem in Filesystem::ALL {
            for flag in [
                "noatime",
                "nodev",
                "x-anything=1",
                "context=\"system_u:object_r:container_file_t:s0:c1,c2\"",
            ] {
                assert_eq!(
                    fit(flag, filesystem, Some(false)),
                    Ok(()),
                    "{filesystem} {flag}"
                );
            }
            assert!(fit("context=", filesystem, None).is_err());
        }
    }

    #[test]
    fn what_is_dangerous_is_refused_with_the_reason() {
        for (filesystem, flag, why) in [
            (Ext4, "nobarrier", "without barriers"),
            (Ext4, "barrier=0", "without barriers"),
            (Xfs, "nobarrier", "without barriers"),
            (Ext4, "data=writeback", "old content"),
            (Ext3, "errors=panic", "take the node down"),
            (Btrfs, "degraded", "one whole device"),
            (Btrfs, "subvol=@", "the whole filesystem"),
        ] {
            let text = fit(flag, filesystem, None).unwrap_err();
            assert!(text.contains(why), "{text}");
        }
    }

    #[test]
    fn an_unknown_option_is_told_with_those_that_are_known() {
        let text = fit("noatimes", Xfs, None).unwrap_err();
        assert!(
            text.contains("\"noatimes\"") && text.contains("not an option of xfs; allowed are"),
            "{text}"
        );
        assert!(
            text.contains("logbsize") && text.contains("noatime,"),
            "{text}"
        );
        let text = fit("commit=1h", Ext4, None).unwrap_err();
        assert!(
            text.ends_with("commit of ext4 accepts a whole number from 1 to 300"),
            "{text}"
        );
    }

    #[test]
    fn a_journal_is_left_unread_only_where_nothing_is_written() {
        for (filesystem, flag) in [
            (Ext4, "noload"),
            (Xfs, "norecovery"),
            (Btrfs, "nologreplay"),
        ] {
            assert_eq!(fit(flag, filesystem, Some(true)), Ok(()));
            assert_eq!(fit(flag, filesystem, None), Ok(()));
            assert!(fit(flag, filesystem, Some(false)).is_err());
        }
    }
}
