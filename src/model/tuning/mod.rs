//! mkfs, fsck, mount and block device options of a StorageClass. The controller checks them and passes them to the node
//! in the volume context.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Filesystem, context};

mod block_settings;
mod features;
mod mkfs;
mod value;

pub use block_settings::BlockSettings;
pub use value::InvalidTuning;

/// How an ext3 or ext4 is checked before a writable mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fsck {
    /// The mount replays the journal. A filesystem that is marked as having errors is rejected.
    Journal,
    /// `e2fsck -p`, as kubelet runs it before it mounts a filesystem: safe repairs only.
    #[default]
    Preen,
    None,
}

impl fmt::Display for Fsck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Journal => "journal",
            Self::Preen => "preen",
            Self::None => "none",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tuning {
    pub fsck: Fsck,
    /// `discard`: whether the disk is informed of free blocks when files are deleted, by the mount option.
    pub discard_mount: bool,
    /// `discard`: whether the disk is informed of free blocks when the filesystem is created.
    pub discard_format: bool,
    /// `projectQuota`: whether mkfs and mount enable project quota.
    pub project_quota: bool,
    /// `blockSize` in bytes.
    pub block_size: Option<u64>,
    /// `inodeSize` in bytes.
    pub inode_size: Option<u64>,
    pub bytes_per_inode: Option<u64>,
    pub label: Option<String>,
    /// `mkfsOptions`, word by word.
    pub mkfs_options: Vec<String>,
    /// `sysConfig`: settings of the block device in sysfs.
    pub block_settings: BlockSettings,
    /// `partition`: whether the filesystem is in the only partition of the disk.
    pub partition: bool,
}

impl Tuning {
    pub const KEYS: [&str; 10] = [
        context::FSCK,
        context::DISCARD,
        context::PROJECT_QUOTA,
        context::BLOCK_SIZE,
        context::INODE_SIZE,
        context::BYTES_PER_INODE,
        context::LABEL,
        context::MKFS_OPTIONS,
        context::SYS_CONFIG,
        context::PARTITION,
    ];

    /// Sets a parameter, whose name is case-insensitive. False if the name is unknown.
    ///
    /// # Errors
    /// The value is not allowed for any filesystem.
    pub fn set(&mut self, key: &str, value: &str) -> Result<bool, InvalidTuning> {
        let Some(key) = Self::KEYS.into_iter().find(|of| of.eq_ignore_ascii_case(key)) else {
            return Ok(false);
        };
        let value = value.trim();
        let refuse = |allowed: &str| InvalidTuning::new(key, value, allowed);
        match key {
            context::FSCK => {
                self.fsck = match value {
                    "journal" => Fsck::Journal,
                    "preen" | "" => Fsck::Preen,
                    "none" => Fsck::None,
                    _ => return Err(refuse("journal, preen, none")),
                };
            }
            context::DISCARD => {
                (self.discard_mount, self.discard_format) = match value {
                    "none" | "" => (false, false),
                    "mount" => (true, false),
                    "format" => (false, true),
                    "both" => (true, true),
                    _ => return Err(refuse("none, mount, format, both")),
                };
            }
            context::PROJECT_QUOTA => {
                let enabled = context::boolean(value).or(value.is_empty().then_some(false));
                self.project_quota = enabled.ok_or_else(|| refuse("\"true\" or \"false\""))?;
            }
            context::BLOCK_SIZE => {
                self.block_size = value::power(value, 512, 64 << 10).map_err(|a| refuse(&a))?;
            }
            context::INODE_SIZE => {
                self.inode_size = value::power(value, 128, 4096).map_err(|a| refuse(&a))?;
            }
            context::BYTES_PER_INODE => {
                self.bytes_per_inode = value::power(value, 1024, 64 << 20).map_err(|a| refuse(&a))?;
            }
            context::LABEL => self.label = value::label(value).map_err(refuse)?,
            context::PARTITION => {
                self.partition = match value {
                    "1" => true,
                    "" => false,
                    _ => return Err(refuse("\"1\", for the only partition of the disk")),
                };
            }
            context::SYS_CONFIG => self.block_settings = BlockSettings::parse(value)?,
            // The kernel does not start a program with a null in an argument.
            _ if value.contains(|c: char| c.is_control() && !c.is_whitespace()) => {
                return Err(refuse("text without control characters"));
            }
            _ => self.mkfs_options = value.split_whitespace().map(str::to_owned).collect(),
        }
        Ok(true)
    }

    pub fn of<'a>(map: impl IntoIterator<Item = (&'a String, &'a String)>) -> Result<Self, InvalidTuning> {
        let mut tuning = Self::default();
        // Sorted, so that repeated requests have the same result.
        for (key, value) in map.into_iter().collect::<BTreeMap<_, _>>() {
            tuning.set(key, value)?;
        }
        Ok(tuning)
    }

    /// The entries of the volume context: parameters that are not the default.
    pub fn entries(&self) -> Vec<(&'static str, String)> {
        let number = |key, value: Option<u64>| value.map(|value| (key, value.to_string()));
        let fsck = (self.fsck != Fsck::default()).then(|| self.fsck.to_string());
        let discard = match (self.discard_mount, self.discard_format) {
            (false, false) => None,
            (true, false) => Some("mount"),
            (false, true) => Some("format"),
            (true, true) => Some("both"),
        };
        let options = Some(self.mkfs_options.join(" ")).filter(|options| !options.is_empty());
        [
            fsck.map(|word| (context::FSCK, word)),
            discard.map(|word| (context::DISCARD, word.to_owned())),
            self.project_quota.then(|| (context::PROJECT_QUOTA, "true".to_owned())),
            number(context::BLOCK_SIZE, self.block_size),
            number(context::INODE_SIZE, self.inode_size),
            number(context::BYTES_PER_INODE, self.bytes_per_inode),
            self.label.clone().map(|label| (context::LABEL, label)),
            options.map(|options| (context::MKFS_OPTIONS, options)),
            (!self.block_settings.is_empty()).then(|| (context::SYS_CONFIG, self.block_settings.to_string())),
            self.partition.then(|| (context::PARTITION, "1".to_owned())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The mount options of `discard` and `projectQuota`.
    pub fn mount_options(&self, filesystem: Filesystem) -> Vec<&'static str> {
        let discard = self.discard_mount.then_some("discard");
        let quota = self.project_quota.then_some(match filesystem {
            Filesystem::Ext4 | Filesystem::Ext3 | Filesystem::Btrfs => "prjquota",
            Filesystem::Xfs => "pquota",
        });
        discard.into_iter().chain(quota).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_in_options_are_rejected_and_line_feeds_separate_them() {
        let mut tuning = Tuning::default();
        assert!(tuning.set("mkfsOptions", "-O quota\0").is_err());
        assert_eq!(tuning.set("mkfsOptions", "-O\nquota"), Ok(true));
        assert_eq!(tuning.mkfs_options, ["-O", "quota"]);
    }

    #[test]
    fn entries_of_the_volume_context_are_parsed_again() {
        let mut tuning = Tuning::default();
        assert!(tuning.entries().is_empty());
        for (key, value) in [
            ("FSCK", "journal"),
            ("discard", "both"),
            ("projectquota", "true"),
            ("blockSize", "4k"),
            ("inodeSize", "512"),
            ("bytesPerInode", "64k"),
            ("label", "data"),
            ("mkfsOptions", "-O  ^metadata_csum"),
            ("sysConfig", "queue/read_ahead_kb=4096"),
            ("partition", "1"),
        ] {
            assert_eq!(tuning.set(key, value), Ok(true), "{key}");
        }
        assert_eq!(tuning.set("fsType", "xfs"), Ok(false));
        let map: std::collections::HashMap<_, _> = tuning
            .entries()
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        assert_eq!(map.len(), Tuning::KEYS.len());
        assert_eq!(Tuning::of(&map), Ok(tuning));
    }

    #[test]
    fn an_invalid_value_is_reported_with_its_key_and_the_allowed_values() {
        for (key, value) in [
            ("fsck", "yes"),
            ("discard", "always"),
            ("projectQuota", "maybe"),
            ("blockSize", "3000"),
            ("inodeSize", "8k"),
            ("bytesPerInode", "-1"),
            ("label", "-F"),
            ("label", "a b"),
            ("sysConfig", "queue/nr_requests=0"),
            ("partition", "2"),
        ] {
            let text = Tuning::default().set(key, value).unwrap_err().to_string();
            assert!(
                text.contains(key) && text.contains(value) && text.contains("allowed: "),
                "{text}"
            );
        }
    }
}
