//! Mount options. The kernel decides which options a filesystem has. This list denies those that endanger data, the
//! node or another volume.

use std::fmt;

/// Options that the driver passes to the kernel, each in an entry of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MountFlags(Vec<String>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("mount option {option:?} is refused: {reason}")]
pub struct InvalidMountFlag {
    pub option: String,
    pub reason: &'static str,
}

/// Denied options, by name or with their value, and the reason.
const DENIED: [(&str, &str); 14] = [
    (
        "nobarrier barrier journal_async_commit",
        "without write barriers, a crash of the host can damage the filesystem",
    ),
    (
        "data=writeback",
        "after a crash, files can contain old data of other files",
    ),
    (
        "errors=continue",
        "the filesystem would be written to after an error, which spreads the damage",
    ),
    (
        "errors=panic fatal_errors=panic",
        "an error of one volume would stop the node",
    ),
    ("abort", "it aborts the journal"),
    ("sb", "another superblock is for the repair of a filesystem"),
    (
        "device logdev rtdev journal_dev journal_path",
        "it names another device than the volume's",
    ),
    ("degraded", "a volume is one complete device"),
    (
        "subvol subvolid",
        "the volume is the whole filesystem; use subPath for a directory of it",
    ),
    (
        "test_dummy_encryption",
        "it encrypts files with a known key, for tests of the kernel",
    ),
    (
        "fc_debug_max_replay fc_debug_force",
        "it limits the replay of the journal, for tests of the kernel",
    ),
    ("remount bind rbind move", "it is an operation, not an option"),
    (
        "shared rshared slave rslave private rprivate unbindable runbindable",
        "mount propagation is a setting of the pod",
    ),
    ("loop offset sizelimit", "the volume is the whole device"),
];

/// Harmless values of denied options.
const ALLOWED: [&str; 5] = ["barrier", "barrier=1", "subvol=/", "subvolid=5", "subvolid=0"];

/// Options that skip the replay of the journal.
const UNREPLAYED: [&str; 6] = [
    "noload",
    "norecovery",
    "nologreplay",
    "rescue",
    "usebackuproot",
    "recovery",
];

/// Options that mount(8) does not pass to the kernel, besides `x-*` and `X-*`.
const USERSPACE: [&str; 10] = [
    "defaults", "auto", "noauto", "nofail", "_netdev", "comment", "nouser", "nousers", "noowner", "nogroup",
];

/// Options that mount(8) replaces: what a user may mount is restricted.
const REPLACED: [(&str, &str); 2] = [("user users", "noexec nosuid nodev"), ("owner group", "nosuid nodev")];

impl MountFlags {
    /// Options with an SELinux label for all files of a filesystem (mount(8)). Only their values are quoted.
    pub const LABELS: [&str; 4] = ["context", "fscontext", "defcontext", "rootcontext"];

    /// Reads the options of a request. Entries can have several options, separated by commas.
    pub fn new(entries: impl IntoIterator<Item = String>) -> Result<Self, InvalidMountFlag> {
        let mut options: Vec<String> = Vec::new();
        for entry in entries {
            if entry.is_empty() {
                return Err(refused(&entry, "it is empty"));
            }
            for option in split(&entry).filter(|option| !is_userspace(option)) {
                let opposite = match option {
                    "ro" => "rw",
                    "rw" => "ro",
                    _ => "",
                };
                let contradicts = options.iter().any(|given| given == opposite);
                let contradiction = contradicts.then_some("\"ro\" and \"rw\" contradict each other");
                if let Some(reason) = contradiction.or_else(|| defect(option)) {
                    return Err(refused(option, reason));
                }
                match REPLACED.iter().find(|(of, _)| words(of).any(|of| of == name(option))) {
                    Some((_, with)) => options.extend(words(with).map(str::to_owned)),
                    None => options.push(option.to_owned()),
                }
            }
        }
        Ok(Self(options))
    }

    /// Checks that a writable mount replays the journal.
    pub fn check_writable(&self) -> Result<(), InvalidMountFlag> {
        match self.iter().find(|flag| UNREPLAYED.contains(&name(flag))) {
            Some(option) => Err(refused(
                option,
                "it skips the replay of the journal, so the mount must be read-only",
            )),
            None => Ok(()),
        }
    }

    pub fn and(mut self, more: impl IntoIterator<Item = &'static str>) -> Self {
        for flag in more {
            if !self.iter().any(|given| given == flag) {
                self.0.push(flag.to_owned());
            }
        }
        self
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether they request a read-only mount.
    pub fn read_only(&self) -> bool {
        self.iter().any(|flag| flag == "ro")
    }

    pub fn is_label(option: &str) -> bool {
        Self::LABELS.contains(&name(option))
    }
}

/// Splits at commas outside quotation marks, as mount(8) and SELinux in the kernel do.
fn split(entry: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    entry.split(move |c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    })
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split(' ')
}

fn name(option: &str) -> &str {
    option.split('=').next().unwrap_or_default()
}

fn is_userspace(option: &str) -> bool {
    option.is_empty() || option.starts_with("x-") || option.starts_with("X-") || USERSPACE.contains(&name(option))
}

fn defect(option: &str) -> Option<&'static str> {
    if option.contains(char::is_control) {
        return Some("it contains a control character");
    }
    if !option.matches('"').count().is_multiple_of(2) {
        return Some("a quotation mark is not closed");
    }
    // Filesystems split at every comma.
    if option.contains('"') && !MountFlags::is_label(option) {
        return Some("only the values of SELinux labels can be quoted");
    }
    let denies = |denied: &str| [option, name(option)].contains(&denied);
    let denied = DENIED.iter().find(|(list, _)| words(list).any(denies));
    denied.filter(|_| !ALLOWED.contains(&option)).map(|(_, reason)| *reason)
}

fn refused(option: &str, reason: &'static str) -> InvalidMountFlag {
    InvalidMountFlag {
        option: option.to_owned(),
        reason,
    }
}

impl fmt::Display for MountFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: &str = "context=\"system_u:object_r:container_file_t:s0:c1,c2\"";

    fn flags(list: &[&str]) -> Result<String, String> {
        let flags = MountFlags::new(list.iter().map(|&flag| flag.to_owned()));
        flags.map(|flags| flags.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn harmless_options_are_passed_to_the_kernel() {
        for option in [
            "noatime,nodiratime",
            "attr2",
            "ikeep",
            "commit=600",
            "commit=0",
            "auto_da_alloc=1",
            "nombcache",
            "inode_readahead_blks=0",
            "dax=never",
            "stripe=131072",
            "jqfmt=vfsv1",
            "nobh",
            "subvol=/",
            "subvolid=5",
            "compress=zstd:-3",
            "max_inline=2047",
            "nosymfollow",
            "data=journal",
            "errors=remount-ro",
            "barrier",
            "barrier=1",
            "norecovery",
            "an_option_of_a_later_kernel=1",
            LABEL,
        ] {
            assert_eq!(flags(&[option]).as_deref(), Ok(option));
        }
        let several = ["noatime,nodiratime", &format!("{LABEL},discard"), "nodev,"];
        assert_eq!(flags(&several), Ok(format!("noatime,nodiratime,{LABEL},discard,nodev")));
    }

    #[test]
    fn options_of_mount_itself_are_dropped() {
        for option in [
            "X-mount.mkdir",
            "x-systemd.automount",
            "comment=a",
            "nouser",
            "nogroup",
            "auto",
            "noauto",
            "nofail",
            "_netdev",
            "defaults",
        ] {
            assert_eq!(flags(&[option]).as_deref(), Ok(""));
        }
        for option in ["user", "user=me", "users"] {
            assert_eq!(
                flags(&["exec", option, "dev"]).as_deref(),
                Ok("exec,noexec,nosuid,nodev,dev")
            );
        }
        for option in ["owner", "group"] {
            assert_eq!(flags(&[option]).as_deref(), Ok("nosuid,nodev"));
        }
    }

    #[test]
    fn options_that_endanger_data_or_other_volumes_are_rejected_with_the_reason() {
        for (option, reason) in [
            ("nobarrier", "without write barriers"),
            ("barrier=0", "without write barriers"),
            ("barrier=0x0", "without write barriers"),
            ("journal_async_commit", "without write barriers"),
            ("data=writeback", "old data of other files"),
            ("errors=continue", "spreads the damage"),
            ("errors=panic", "stop the node"),
            ("abort", "journal"),
            ("sb=131072", "repair"),
            ("device=/dev/vda", "another device"),
            ("logdev=/dev/vda", "another device"),
            ("rtdev=/dev/vda", "another device"),
            ("journal_path=/dev/vda", "another device"),
            ("journal_dev=0x802", "another device"),
            ("degraded", "one complete device"),
            ("subvol=@", "the whole filesystem"),
            ("subvolid=256", "the whole filesystem"),
            ("test_dummy_encryption=v2", "tests of the kernel"),
            ("fc_debug_max_replay=1", "replay of the journal"),
            ("remount", "an operation"),
            ("bind", "an operation"),
            ("rshared", "mount propagation"),
            ("offset=4096", "the whole device"),
            ("context=\"x", "not closed"),
            ("a=\"x,device=/dev/vda,y\"", "can be quoted"),
            ("a\0b", "control character"),
            ("a\n", "control character"),
        ] {
            let first = flags(&[&format!("noatime,{option}")]).unwrap_err();
            let second = flags(&["nodev", option]).unwrap_err();
            assert_eq!(first, second);
            assert!(
                first.contains(reason) && first.contains(&format!("{option:?}")),
                "{first}"
            );
        }
    }

    #[test]
    fn the_journal_is_skipped_by_read_only_mounts_only() {
        for option in ["noload", "norecovery", "nologreplay", "rescue=nologreplay"] {
            let flags = MountFlags::new([format!("noatime,{option}")]).unwrap();
            let error = flags.check_writable().unwrap_err().to_string();
            assert!(error.contains(option), "{error}");
        }
        let flags = MountFlags::new(["noatime".to_owned()]).unwrap();
        assert_eq!(flags.check_writable(), Ok(()));
    }

    #[test]
    fn ro_contradicts_rw() {
        for entries in [&["ro", "rw"][..], &["rw,noatime", "ro"]] {
            let error = flags(entries).unwrap_err();
            assert!(error.contains("contradict"), "{error}");
        }
        assert!(MountFlags::new(["ro,ro".to_owned()]).unwrap().read_only());
        assert!(!MountFlags::new(["rw".to_owned()]).unwrap().read_only());
    }
}
