//! Arguments of mkfs from a StorageClass. Options that force, name another device, a file or an offset, or omit the
//! journal are denied; mkfs checks the others.

use super::{InvalidTuning, Tuning, features};
use crate::model::Filesystem;

const FORCE: &str = "mkfs must refuse a disk with content";
const OTHER_TARGET: &str = "it names another device or a file, or an offset";
const INCOMPLETE: &str = "mkfs would not create a complete filesystem";
const NO_JOURNAL: &str = "without a journal, a crash can damage the filesystem";

/// Denied options, and denied keys or features in their values, with the reason.
type Denied = &'static [(&'static [&'static str], &'static str)];

fn denied(filesystem: Filesystem) -> Denied {
    match filesystem {
        Filesystem::Ext4 | Filesystem::Ext3 => &[
            (&["-F"], FORCE),
            (&["-d", "-l", "-z", "device", "offset"], OTHER_TARGET),
            (&["-n", "-S", "-V", "journal_dev", "android_sparse"], INCOMPLETE),
            (&["assume_storage_prezeroed"], "the disk is only sampled for zeros"),
            (&["^has_journal", "-has_journal", "none", "clear"], NO_JOURNAL),
            (&["-c"], "it reads or writes every block of the disk"),
            (&["-e"], "the driver sets it, to remount-ro"),
        ],
        Filesystem::Xfs => &[
            // -C is a synonym that the manual page does not name.
            (&["-f", "-C"], FORCE),
            (&["-c", "-p", "file", "name", "logdev", "rtdev"], OTHER_TARGET),
            (&["-N", "-V"], INCOMPLETE),
        ],
        Filesystem::Btrfs => &[
            (&["-f", "--force"], FORCE),
            (&["-r", "--rootdir"], OTHER_TARGET),
            (&["-V", "-h", "--version", "--help", "--shrink", "list-all"], INCOMPLETE),
        ],
    }
}

fn switches(filesystem: Filesystem) -> &'static [&'static str] {
    match filesystem {
        Filesystem::Ext4 | Filesystem::Ext3 => &["-D", "-K", "-j", "-q", "-v"],
        Filesystem::Xfs => &["-K", "-q"],
        Filesystem::Btrfs => &["-K", "-M", "-q", "-v", "--mixed", "--nodiscard", "--quiet", "--verbose"],
    }
}

/// The reason to deny an option, if there is one. getopt_long(3) accepts a long option by its first letters.
fn reason(filesystem: Filesystem, option: &str) -> Option<&'static str> {
    let is = |of: &&str| *of == option || option.starts_with("--") && of.starts_with(option);
    let mut denied = denied(filesystem).iter();
    denied.find(|(list, _)| list.iter().any(&is)).map(|(_, reason)| *reason)
}

/// Options and their values, each option once: of two, mke2fs uses the last.
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
    pub fn mkfs_arguments(&self, filesystem: Filesystem, supported: &str) -> Result<Vec<String>, InvalidTuning> {
        let mut given = Arguments::default();
        for (option, value) in features::defaults(filesystem, supported, &self.mkfs_options) {
            given.add(option, &value);
        }
        let mut words = vec!["-q".to_owned()];
        if filesystem.is_ext() {
            // No blocks are reserved for root: the volume belongs to one workload.
            if !self.mkfs_options.iter().any(|word| word == "-m") {
                given.add("-m", "0");
            }
            given.add("-E", if self.discard_format { "discard" } else { "nodiscard" });
            // With the default, `continue`, damage spreads while the pod writes.
            given.add("-e", "remount-ro");
        } else if !self.discard_format {
            // A blank disk has nothing to discard, and large ones take minutes.
            words.push("-K".to_owned());
        }
        self.add_parameters(filesystem, &mut given)?;
        self.add_options(filesystem, &mut given)?;
        let given = given.0.into_iter();
        let given = given.flat_map(|(option, value)| [option, value]);
        words.extend(given.filter(|word| !word.is_empty()));
        Ok(words)
    }

    fn add_parameters(&self, filesystem: Filesystem, given: &mut Arguments) -> Result<(), InvalidTuning> {
        use crate::model::context::{BLOCK_SIZE, BYTES_PER_INODE, INODE_SIZE, LABEL, PROJECT_QUOTA};
        let refuse = |key, value: &str, allowed: &str| {
            let allowed = format!("with {filesystem}, {allowed}");
            Err(InvalidTuning::new(key, value, &allowed))
        };
        if let Some(size) = self.block_size {
            // The kernel does not mount ext with blocks larger than a page; xfs with smaller blocks has no checksums.
            let (option, value, allowed) = match filesystem {
                Filesystem::Ext4 | Filesystem::Ext3 => ("-b", size.to_string(), 1024..=4096),
                Filesystem::Xfs => ("-b", format!("size={size}"), 1024..=4096),
                Filesystem::Btrfs => ("-s", size.to_string(), 4096..=4096),
            };
            if !allowed.contains(&size) {
                let allowed = format!("a power of two from {} to 4096", allowed.start());
                return refuse(BLOCK_SIZE, &size.to_string(), &allowed);
            }
            given.add(option, &value);
        }
        if let Some(size) = self.inode_size {
            let block = self.block_size.unwrap_or(4096);
            let (option, value, allowed) = match filesystem {
                Filesystem::Ext4 | Filesystem::Ext3 => ("-I", size.to_string(), 128..=block),
                Filesystem::Xfs => ("-i", format!("size={size}"), 512..=block / 2),
                Filesystem::Btrfs => {
                    let allowed = "none: its inodes have no fixed size";
                    return refuse(INODE_SIZE, &size.to_string(), allowed);
                }
            };
            if !allowed.contains(&size) {
                let allowed = format!("{} to {}", allowed.start(), allowed.end());
                return refuse(INODE_SIZE, &size.to_string(), &allowed);
            }
            given.add(option, &value);
        }
        if let Some(ratio) = self.bytes_per_inode {
            if !filesystem.is_ext() {
                let allowed = "none: it allocates inodes dynamically";
                return refuse(BYTES_PER_INODE, &ratio.to_string(), allowed);
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
                return refuse(LABEL, label, &format!("at most {most} characters"));
            }
            given.add("-L", label);
        }
        if self.project_quota {
            match filesystem {
                Filesystem::Ext4 => {
                    given.add("-O", "quota,project");
                    given.add("-E", "quotatype=prjquota");
                }
                // No option of mkfs is required.
                Filesystem::Xfs => {}
                Filesystem::Ext3 | Filesystem::Btrfs => {
                    let allowed = "\"false\": ext4 and xfs have project quota";
                    return refuse(PROJECT_QUOTA, "true", allowed);
                }
            }
        }
        Ok(())
    }

    /// Adds `mkfsOptions`. mkfs rejects unknown options.
    fn add_options(&self, filesystem: Filesystem, given: &mut Arguments) -> Result<(), InvalidTuning> {
        let refuse = |why: String| {
            let allowed = format!("options of mkfs.{filesystem} and their values; {why}");
            let value = self.mkfs_options.join(" ");
            InvalidTuning::new(crate::model::context::MKFS_OPTIONS, &value, &allowed)
        };
        let denied = |part: &str| match reason(filesystem, part) {
            Some(why) => Err(refuse(format!("{part:?} is denied: {why}"))),
            None => Ok(()),
        };
        let mut words = self.mkfs_options.iter().peekable();
        while let Some(word) = words.next() {
            let is_long = word.starts_with("--");
            let (option, attached) = match word.split_once('=') {
                Some((option, value)) if is_long => (option, Some(value)),
                _ => (word.as_str(), None),
            };
            let is_short = word.starts_with('-') && word.len() == 2;
            if is_long == is_short {
                return Err(refuse(format!("{word:?} is not an option")));
            }
            denied(option)?;
            if switches(filesystem).contains(&option) {
                given.add(option, "");
                continue;
            }
            let next = words.next_if(|_| attached.is_none());
            // getopt_long(3) reads a value that begins with a dash as an option, if the option before it has none.
            let value = attached
                .or(next.map(String::as_str))
                .filter(|value| !value.starts_with('-'));
            let Some(value) = value else {
                return Err(refuse(format!("{option:?} needs a value")));
            };
            for part in value.split(',') {
                let name = part.split('=').next().unwrap_or_default();
                // mke2fs ignores the case of features, and also accepts their numbers.
                let lower = name.to_lowercase();
                if lower.trim_start_matches(['^', '-', '+']).starts_with("feature_") {
                    return Err(refuse(format!("{name:?} is denied: it names a feature by its number")));
                }
                denied(if filesystem.is_ext() { &lower } else { name })?;
            }
            if value.contains('/') {
                return Err(refuse(format!("{value:?} is denied: {OTHER_TARGET}")));
            }
            given.add(option, value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use Filesystem::{Btrfs, Ext3, Ext4, Xfs};

    use super::*;

    fn tuning(parameters: &[(&str, &str)]) -> Tuning {
        let mut tuning = Tuning::default();
        for (key, value) in parameters {
            assert_eq!(tuning.set(key, value), Ok(true));
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
    fn default_arguments() {
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
    fn parameters_become_options_of_each_filesystem_and_each_option_occurs_once() {
        let common = [("blockSize", "4096"), ("label", "data"), ("discard", "format")];
        assert_eq!(arguments(Xfs, &common).unwrap(), "-q -b size=4096 -L data");
        assert_eq!(arguments(Btrfs, &common).unwrap(), "-q -s 4096 -L data");
        let ext = [
            ("projectQuota", "true"),
            ("bytesPerInode", "64k"),
            ("inodeSize", "512"),
            ("mkfsOptions", "-O ^metadata_csum -E stride=16,lazy_itable_init=0 -m 1"),
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
    fn options_that_force_or_name_another_target_are_denied_with_the_reason() {
        for (filesystem, options, why) in [
            (Ext4, "-F", FORCE),
            (Btrfs, "--mix=-Kf", "needs a value"),
            (Ext4, "-FF", "not an option"),
            (Ext4, "-qF", "not an option"),
            (Ext4, "-q -F", FORCE),
            (Ext4, "-d /etc", OTHER_TARGET),
            (Ext4, "-d dir", OTHER_TARGET),
            (Ext4, "-l blocks", OTHER_TARGET),
            (Ext4, "-z undo", OTHER_TARGET),
            (Ext4, "-E stride=16,offset=4096", OTHER_TARGET),
            (Ext4, "-R offset=4096", OTHER_TARGET),
            (Ext4, "-J size=64,device=/dev/vda", OTHER_TARGET),
            (Ext4, "-O quota,^has_journal", NO_JOURNAL),
            (Ext4, "-O none", NO_JOURNAL),
            (Ext4, "-O NONE", NO_JOURNAL),
            (Ext4, "-O ^Has_Journal", NO_JOURNAL),
            (Ext4, "-O ^FEATURE_C2", "by its number"),
            (Ext4, "-E assume_storage_prezeroed=1", "sampled"),
            (Ext4, "-O journal_dev", INCOMPLETE),
            (Ext4, "-n", INCOMPLETE),
            (Ext4, "-S", INCOMPLETE),
            (Ext4, "-c", "every block"),
            (Ext4, "-e continue", "remount-ro"),
            (Ext4, "-E", "needs a value"),
            (Ext4, "-E -F", "needs a value"),
            (Ext4, "/dev/vda", "not an option"),
            (Ext4, "- vda", "not an option"),
            (Ext4, "-q 1g", "not an option"),
            (Ext4, "-m 1 1g", "not an option"),
            (Ext4, "-m 1 -- /dev/vda", "not an option"),
            (Ext4, "-Y /dev/vda", OTHER_TARGET),
            (Xfs, "-f", FORCE),
            (Xfs, "-N", INCOMPLETE),
            (Xfs, "-l size=64m,logdev=/dev/vda", OTHER_TARGET),
            (Xfs, "-d file=1", OTHER_TARGET),
            (Xfs, "-d name=vda", OTHER_TARGET),
            (Xfs, "-r rtdev=/dev/vda", OTHER_TARGET),
            (Xfs, "-p proto", OTHER_TARGET),
            (Xfs, "-c options=file", OTHER_TARGET),
            (Btrfs, "-f", FORCE),
            (Btrfs, "--force", FORCE),
            (Btrfs, "--fo", FORCE),
            (Btrfs, "--rootdir=dir", OTHER_TARGET),
            (Btrfs, "-r dir", OTHER_TARGET),
            (Btrfs, "--shrink", INCOMPLETE),
            (Btrfs, "-O list-all", INCOMPLETE),
            (Btrfs, "-K /dev/vdb", "not an option"),
            (Btrfs, "--new-switch /dev/vdb", OTHER_TARGET),
        ] {
            let text = arguments(filesystem, &[("mkfsOptions", options)]).unwrap_err();
            for part in ["mkfsOptions", options, why] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }

    #[test]
    fn all_other_options_are_passed_to_mkfs() {
        for (filesystem, options, parts) in [
            (
                Ext4,
                "-O bigalloc -C 64k -U random",
                &[",bigalloc ", " -C 64k -U random"][..],
            ),
            (Ext4, "-D -j -T news", &[" -D -j -T news"]),
            (Ext4, "-I 1024", &[" -I 1024"]),
            (
                Xfs,
                "-m uuid=4c6b2f2a -d concurrency=4",
                &["-q -K -m uuid=4c6b2f2a -d concurrency=4"],
            ),
            (Xfs, "-l internal=1,size=64m", &[" -l internal=1,size=64m"]),
            (
                Btrfs,
                "-M --csum=sha256 --data raid0",
                &["-q -K -M --csum sha256 --data raid0"],
            ),
            (Btrfs, "-m much", &["-q -K -m much"]),
        ] {
            let line = arguments(filesystem, &[("mkfsOptions", options)]).unwrap();
            for part in parts {
                assert!(line.contains(part), "{part}: {line}");
            }
        }
    }

    #[test]
    fn a_parameter_that_a_filesystem_does_not_support_is_rejected_with_the_allowed_values() {
        for (filesystem, key, value, allowed) in [
            (Ext4, "blockSize", "64k", "1024 to 4096"),
            (Btrfs, "inodeSize", "512", "no fixed size"),
            (Xfs, "inodeSize", "4096", "512 to 2048"),
            (Xfs, "bytesPerInode", "16k", "dynamically"),
            (Xfs, "label", "a-very-long-label", "at most 12"),
            (Ext3, "projectQuota", "true", "ext4 and xfs"),
            (Btrfs, "projectQuota", "true", "ext4 and xfs"),
        ] {
            let text = arguments(filesystem, &[(key, value)]).unwrap_err();
            assert!(text.contains(key) && text.contains(allowed), "{text}");
        }
    }
}
