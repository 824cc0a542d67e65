//! Arguments of mkfs from a StorageClass. Every allowed option is listed: none forces, names another device, file or offset,
//! or removes the journal.

use super::{Discard, Tuning, features};
use crate::model::Filesystem;

/// A parameter that a filesystem does not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key:?} has value {value:?}; allowed: {allowed}")]
pub struct InvalidTuning {
    pub key: &'static str,
    pub value: String,
    pub allowed: String,
}

impl InvalidTuning {
    pub(super) fn new(key: &'static str, value: &str, allowed: &str) -> Self {
        Self {
            key,
            value: value.to_owned(),
            allowed: allowed.to_owned(),
        }
    }
}

/// An option of mkfs and its values.
#[derive(Debug, Clone, Copy)]
enum OptionValue {
    /// A number, with k, m or g or without.
    Number,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Words of these by commas, each perhaps with `^` before it.
    Features(&'static [&'static str]),
    /// `key=number` by commas, of these keys, or these keys alone.
    Pairs(&'static [&'static str]),
}

use OptionValue::{Features, Number, Pairs, Word};

const EXT: &[(&str, OptionValue)] = &[
    ("-g", Number),
    ("-G", Number),
    ("-m", Number),
    ("-N", Number),
    ("-J", Pairs(&["size", "fast_commit_size"])),
    (
        "-T",
        Word(&[
            "default",
            "small",
            "big",
            "huge",
            "news",
            "largefile",
            "largefile4",
        ]),
    ),
    (
        "-O",
        Features(&[
            "64bit",
            "dir_index",
            "dir_nlink",
            "ea_inode",
            "encrypt",
            "casefold",
            "extra_isize",
            "fast_commit",
            "filetype",
            "flex_bg",
            "inline_data",
            "large_dir",
            "large_file",
            "meta_bg",
            "metadata_csum",
            "metadata_csum_seed",
            "orphan_file",
            "quota",
            "resize_inode",
            "sparse_super",
            "stable_inodes",
            "uninit_bg",
            "verity",
        ]),
    ),
    (
        "-E",
        Pairs(&[
            "lazy_itable_init",
            "lazy_journal_init",
            "packed_meta_blocks",
            "resize",
            "stride",
            "stripe_width",
            "stripe-width",
        ]),
    ),
];

const XFS: &[(&str, OptionValue)] = &[
    (
        "-d",
        Pairs(&[
            "agcount", "agsize", "noalign", "su", "sunit", "sw", "swidth",
        ]),
    ),
    (
        "-i",
        Pairs(&[
            "align",
            "attr",
            "exchange",
            "maxpct",
            "nrext64",
            "perblock",
            "projid32bit",
            "sparse",
        ]),
    ),
    (
        "-l",
        Pairs(&["lazy-count", "size", "su", "sunit", "version"]),
    ),
    (
        "-m",
        Pairs(&[
            "bigtime",
            "crc",
            "finobt",
            "inobtcount",
            "reflink",
            "rmapbt",
        ]),
    ),
    ("-n", Pairs(&["ftype", "parent", "size", "version"])),
    ("-s", Pairs(&["size"])),
];

const BTRFS: &[(&str, OptionValue)] = &[
    ("-d", Word(&["single", "dup"])),
    ("-m", Word(&["single", "dup"])),
    ("-n", Number),
    ("--csum", Word(&["crc32c", "xxhash", "sha256", "blake2"])),
    (
        "-O",
        Features(&[
            "block-group-tree",
            "extref",
            "free-space-tree",
            "mixed-bg",
            "no-holes",
            "quota",
            "skinny-metadata",
        ]),
    ),
];

fn table(filesystem: Filesystem) -> &'static [(&'static str, OptionValue)] {
    match filesystem {
        Filesystem::Ext4 | Filesystem::Ext3 => EXT,
        Filesystem::Xfs => XFS,
        Filesystem::Btrfs => BTRFS,
    }
}

/// Options and their values, each option once: mke2fs heeds the last of two.
#[derive(Debug, Default)]
struct Arguments(Vec<(String, String)>);

impl Arguments {
    fn add(&mut self, option: &str, value: &str) {
        match self.0.iter_mut().find(|(of, _)| of == option) {
            Some((_, values)) => {
                values.push(',');
                values.push_str(value);
            }
            None => self.0.push((option.to_owned(), value.to_owned())),
        }
    }
}

impl Tuning {
    /// The arguments of mkfs, without the device. `supported` is the tool's own list of its features, or empty.
    ///
    /// # Errors
    /// If this filesystem does not support a parameter.
    pub fn mkfs_arguments(
        &self,
        filesystem: Filesystem,
        supported: &str,
    ) -> Result<Vec<String>, InvalidTuning> {
        let mut given = Arguments::default();
        for (option, value) in features::defaults(filesystem, supported, &self.mkfs_options) {
            given.add(option, &value);
        }
        let format = matches!(self.discard, Discard::Format | Discard::Both);
        let mut words = vec!["-q".to_owned()];
        match filesystem {
            Filesystem::Ext4 | Filesystem::Ext3 => {
                // No blocks are kept back for root: the volume belongs to one workload.
                if !self.mkfs_options.iter().any(|word| word.starts_with("-m")) {
                    given.add("-m", "0");
                }
                given.add("-E", if format { "discard" } else { "nodiscard" });
                // The default, `continue`, lets damage spread while the pod writes.
                given.add("-e", "remount-ro");
            }
            // A blank disk has nothing to discard, and large ones take minutes.
            Filesystem::Xfs | Filesystem::Btrfs if !format => words.push("-K".to_owned()),
            Filesystem::Xfs | Filesystem::Btrfs => {}
        }
        self.typed(filesystem, &mut given)?;
        self.free(filesystem, &mut given)?;
        words.extend(
            given
                .0
                .into_iter()
                .flat_map(|(option, value)| [option, value]),
        );
        Ok(words)
    }

    fn typed(&self, filesystem: Filesystem, given: &mut Arguments) -> Result<(), InvalidTuning> {
        use crate::model::context::{
            BLOCK_SIZE, BYTES_PER_INODE, INODE_SIZE, LABEL, PROJECT_QUOTA,
        };
        let of = |key, value: &str, allowed: &str| {
            Err(InvalidTuning::new(
                key,
                value,
                &format!("with {filesystem}, {allowed}"),
            ))
        };
        let is_ext = matches!(filesystem, Filesystem::Ext4 | Filesystem::Ext3);
        if let Some(size) = self.block_size {
            let text = size.to_string();
            match filesystem {
                // A larger one than a page of memory cannot be mounted.
                Filesystem::Ext4 | Filesystem::Ext3 if (1024..=4096).contains(&size) => {
                    given.add("-b", &text);
                }
                Filesystem::Ext4 | Filesystem::Ext3 => {
                    return of(BLOCK_SIZE, &text, "1024, 2048, 4096");
                }
                // Below 1024 mkfs disables checksums.
                Filesystem::Xfs if (1024..=4096).contains(&size) => {
                    given.add("-b", &format!("size={size}"));
                }
                Filesystem::Xfs => return of(BLOCK_SIZE, &text, "1024, 2048, 4096"),
                Filesystem::Btrfs if size == 4096 => given.add("-s", &text),
                Filesystem::Btrfs => return of(BLOCK_SIZE, &text, "4096"),
            }
        }
        if let Some(size) = self.inode_size {
            let block = self.block_size.unwrap_or(4096);
            let text = size.to_string();
            match filesystem {
                Filesystem::Ext4 | Filesystem::Ext3 if size <= block => given.add("-I", &text),
                Filesystem::Ext4 | Filesystem::Ext3 => {
                    return of(INODE_SIZE, &text, "128 to the size of a block");
                }
                Filesystem::Xfs if (512..=block / 2).contains(&size) => {
                    given.add("-i", &format!("size={size}"));
                }
                Filesystem::Xfs => {
                    return of(
                        INODE_SIZE,
                        &text,
                        "512 to half the size of a block, which is 4096 unless said",
                    );
                }
                Filesystem::Btrfs => {
                    return of(INODE_SIZE, &text, "none: its inodes have no fixed size");
                }
            }
        }
        if let Some(ratio) = self.bytes_per_inode {
            if !is_ext {
                return of(
                    BYTES_PER_INODE,
                    &ratio.to_string(),
                    "none: it makes inodes as they are needed",
                );
            }
            given.add("-i", &ratio.to_string());
        }
        if let Some(label) = &self.label {
            let most = match filesystem {
                Filesystem::Ext4 | Filesystem::Ext3 => 16,
                Filesystem::Xfs => 12,
                Filesystem::Btrfs => 255,
            };
            if label.len() > most {
                return of(LABEL, label, &format!("at most {most} characters"));
            }
            given.add("-L", label);
        }
        if self.project_quota {
            match filesystem {
                Filesystem::Ext4 => {
                    given.add("-O", "quota,project");
                    given.add("-E", "quotatype=prjquota");
                }
                // It needs no preparation.
                Filesystem::Xfs => {}
                Filesystem::Ext3 | Filesystem::Btrfs => {
                    return of(
                        PROJECT_QUOTA,
                        "true",
                        "\"false\": ext4 and xfs have project quota",
                    );
                }
            }
        }
        Ok(())
    }

    fn free(&self, filesystem: Filesystem, given: &mut Arguments) -> Result<(), InvalidTuning> {
        let table = table(filesystem);
        let refuse = |why: String| {
            let names: Vec<String> = table
                .iter()
                .map(|(name, values)| format!("{name} {}", values.expected()))
                .collect();
            InvalidTuning::new(
                crate::model::context::MKFS_OPTIONS,
                &self.mkfs_options.join(" "),
                &format!("with {filesystem}, {}; {why}", names.join("; ")),
            )
        };
        let mut words = self.mkfs_options.iter();
        while let Some(option) = words.next() {
            let option_values = table.iter().find(|(name, _)| name == option);
            let Some((name, values)) = option_values else {
                return Err(refuse(format!("not {option:?}")));
            };
            let value = words.next();
            let value = value.ok_or_else(|| refuse(format!("{option} needs a value")))?;
            if !values.admits(value) {
                return Err(refuse(format!("not \"{option} {value}\"")));
            }
            given.add(name, value);
        }
        Ok(())
    }
}

/// A number with or without k, m or g. mkfs rejects values that are too small or too large.
fn is_number(text: &str) -> bool {
    crate::model::mount_option::size(text).is_some()
}

impl OptionValue {
    fn admits(self, value: &str) -> bool {
        match self {
            Number => is_number(value),
            Word(words) => words.contains(&value),
            Features(words) => value
                .split(',')
                .all(|word| words.contains(&word.strip_prefix('^').unwrap_or(word))),
            Pairs(keys) => value.split(',').all(|pair| match pair.split_once('=') {
                Some((key, number)) => keys.contains(&key) && is_number(number),
                None => keys.contains(&pair),
            }),
        }
    }

    fn expected(&self) -> String {
        match self {
            Number => "NUMBER".to_owned(),
            Word(words) => words.join("|"),
            Features(words) => format!("[^]{}", words.join(",")),
            Pairs(keys) => format!("{}[=NUMBER]", keys.join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use Filesystem::{Btrfs, Ext3, Ext4, Xfs};

    use super::*;

    fn tuning(parameters: &[(&str, &str)]) -> Tuning {
        let mut tuning = Tuning::default();
        for (key, value) in parameters {
            assert_eq!(tuning.take(key, value), Ok(true));
        }
        tuning
    }

    fn arguments(filesystem: Filesystem, parameters: &[(&str, &str)]) -> Result<String, String> {
        let arguments = tuning(parameters).mkfs_arguments(filesystem, "");
        arguments
            .map(|words| words.join(" "))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn what_nobody_tuned_is_made_as_ever() {
        for (filesystem, line) in [
            (
                Ext4,
                "-q -O none,has_journal,ext_attr,resize_inode,dir_index,filetype,sparse_super,large_file,extent,flex_bg,\
                 64bit,huge_file,dir_nlink,extra_isize,metadata_csum -m 0 -E nodiscard -e remount-ro",
            ),
            (
                Ext3,
                "-q -O none,has_journal,ext_attr,resize_inode,dir_index,filetype,sparse_super,large_file -m 0 \
                 -E nodiscard -e remount-ro",
            ),
            (Xfs, "-q -K"),
            (Btrfs, "-q -K"),
        ] {
            assert_eq!(arguments(filesystem, &[]).unwrap(), line);
        }
    }

    #[test]
    fn each_filesystem_gets_its_own_words_and_each_option_once() {
        let common = [
            ("blockSize", "4096"),
            ("label", "data"),
            ("discard", "format"),
        ];
        assert_eq!(arguments(Xfs, &common).unwrap(), "-q -b size=4096 -L data");
        assert_eq!(arguments(Btrfs, &common).unwrap(), "-q -s 4096 -L data");
        let ext = [
            ("projectQuota", "true"),
            ("bytesPerInode", "64k"),
            ("inodeSize", "512"),
            (
                "mkfsOptions",
                "-O ^metadata_csum -E stride=16,lazy_itable_init=0 -m 1",
            ),
        ];
        let line = arguments(Ext4, &ext).unwrap();
        for part in [
            "-q -O none,has_journal,",
            ",extra_isize,metadata_csum,quota,project,^metadata_csum ",
            " -E nodiscard,quotatype=prjquota,stride=16,lazy_itable_init=0 -e remount-ro -I 512 -i 65536 -m 1",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }

    #[test]
    fn nothing_that_forces_or_names_another_place_is_taken() {
        for (filesystem, options) in [
            (Ext4, "-F"),
            (Ext4, "-FF"),
            (Ext4, "-d /etc"),
            (Ext4, "-E offset=4096"),
            (Ext4, "-J device=/dev/vda"),
            (Ext4, "-O ^has_journal"),
            (Ext4, "-O journal_dev"),
            (Ext4, "-n"),
            (Ext4, "-S"),
            (Ext4, "-E"),
            (Ext4, "/dev/vda"),
            (Ext4, "-m ''"),
            (Ext4, "-U random"),
            (Xfs, "-f"),
            (Xfs, "-N"),
            (Xfs, "-l logdev=/dev/vda"),
            (Xfs, "-l internal=0"),
            (Xfs, "-d file=1"),
            (Xfs, "-d name=/dev/vda"),
            (Xfs, "-r rtdev=/dev/vda"),
            (Xfs, "-p /etc/proto"),
            (Xfs, "-d size=1g"),
            (Xfs, "-m uuid=1"),
            (Btrfs, "-f"),
            (Btrfs, "-r /etc"),
            (Btrfs, "-b 1g"),
            (Btrfs, "-d raid0"),
            (Btrfs, "--shrink"),
            (Btrfs, "/dev/vdb"),
        ] {
            let text = arguments(filesystem, &[("mkfsOptions", options)]).unwrap_err();
            assert!(
                text.contains("mkfsOptions") && text.contains(options),
                "{text}"
            );
        }
    }

    #[test]
    fn an_option_without_its_value_is_told_as_that() {
        let text = arguments(Ext4, &[("mkfsOptions", "-O quota -m")]).unwrap_err();
        assert!(text.ends_with("; -m needs a value"), "{text}");
        let text = arguments(Ext4, &[("mkfsOptions", "-m much")]).unwrap_err();
        assert!(text.ends_with("; not \"-m much\""), "{text}");
    }

    #[test]
    fn a_parameter_that_a_filesystem_does_not_know_is_refused_with_what_it_takes() {
        for (filesystem, key, value, allowed) in [
            (Ext4, "blockSize", "64k", "1024, 2048, 4096"),
            (Btrfs, "inodeSize", "512", "no fixed size"),
            (Xfs, "inodeSize", "4096", "half the size of a block"),
            (Xfs, "bytesPerInode", "16k", "as they are needed"),
            (Xfs, "label", "a-very-long-label", "at most 12"),
            (Ext3, "projectQuota", "true", "ext4 and xfs"),
            (Btrfs, "projectQuota", "true", "ext4 and xfs"),
        ] {
            let text = arguments(filesystem, &[(key, value)]).unwrap_err();
            assert!(text.contains(key) && text.contains(allowed), "{text}");
        }
    }
}
