//! Mount flags, as a capability carries them: one option an entry.

use std::borrow::Cow;
use std::fmt;

/// Options that were checked to be options and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MountFlags(Vec<String>);

/// A flag that cannot be passed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("mount flag {flag:?} is refused: {reason}")]
pub struct InvalidMountFlag {
    pub flag: String,
    /// What is wrong with it.
    pub reason: Cow<'static, str>,
}

/// Words that mount(8) does not pass on as options of a filesystem but acts on: they would turn one
/// mount into another operation, on another device or with another reach.
const OPERATIONS: [&str; 15] = [
    "remount",
    "bind",
    "rbind",
    "move",
    "loop",
    "shared",
    "rshared",
    "private",
    "rprivate",
    "slave",
    "rslave",
    "unbindable",
    "runbindable",
    "offset",
    "sizelimit",
];

/// Options by which a filesystem opens another device: of btrfs, of xfs, and of ext3 and ext4. The
/// driver answers for the volume's device only.
const DEVICES: [&str; 5] = ["device", "logdev", "rtdev", "journal_path", "journal_dev"];

impl MountFlags {
    /// Validates flags from a request.
    ///
    /// # Errors
    /// If a flag is empty, contains control characters or more than one option, names another device, or is an operation
    /// instead of an option. [`MountFlags::fit`] checks whether a filesystem supports it.
    pub fn new(flags: impl IntoIterator<Item = String>) -> Result<Self, InvalidMountFlag> {
        flags
            .into_iter()
            .map(|flag| match defect(&flag) {
                Some(reason) => Err(InvalidMountFlag {
                    flag,
                    reason: reason.into(),
                }),
                None => Ok(flag),
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// These and more, each once.
    #[must_use]
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

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether they ask for a read-only mount: the last of `ro` and `rw` counts.
    #[must_use]
    pub fn read_only(&self) -> bool {
        self.iter()
            .rfind(|flag| matches!(*flag, "ro" | "rw"))
            .is_some_and(|flag| flag == "ro")
    }
}

/// The name of an option.
pub(super) fn option(flag: &str) -> &str {
    flag.split('=').next().unwrap_or_default()
}

fn defect(flag: &str) -> Option<&'static str> {
    if flag.is_empty() {
        Some("it is empty")
    } else if flag.contains(char::is_control) {
        Some("it holds a control character")
    } else if !flag.matches('"').count().is_multiple_of(2) {
        Some("a quotation mark is not closed")
    } else if flag.split('"').step_by(2).any(|part| part.contains(',')) {
        // A quoted comma belongs to the value: SELinux contexts have them.
        Some("it holds a comma: give one option an entry")
    } else if OPERATIONS.contains(&option(flag)) {
        Some("it is an operation, not an option")
    } else if flag.split(',').any(|part| DEVICES.contains(&option(part))) {
        // Here a quotation mark protects nothing: btrfs and others split at every comma.
        Some("it names another device than the volume's")
    } else {
        None
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

    fn flags(list: &[&str]) -> Result<MountFlags, InvalidMountFlag> {
        MountFlags::new(list.iter().map(|&flag| flag.to_owned()))
    }

    #[test]
    fn an_option_that_hides_another_one_is_refused() {
        for flag in [
            "noatime,bind",
            "bind",
            "remount",
            "offset=4096",
            "a\0b",
            "a\n",
            "",
            "context=\"x",
        ] {
            assert!(flags(&[flag]).is_err(), "{flag:?}");
        }
        let text = flags(&["noatime,rw"]).unwrap_err().to_string();
        assert_eq!(
            text,
            "mount flag \"noatime,rw\" is refused: it holds a comma: give one option an entry"
        );
    }

    #[test]
    fn an_option_that_names_another_device_is_refused() {
        for flag in [
            "device=/dev/vda",
            "logdev=/dev/vda",
            "rtdev=/dev/vda",
            "journal_path=/dev/vda",
            "journal_dev=0x802",
            "context=\"x,device=/dev/vda,y\"",
        ] {
            let text = flags(&["noatime", flag]).unwrap_err().to_string();
            assert!(
                text.ends_with("names another device than the volume's"),
                "{text}"
            );
        }
        assert!(flags(&["nodev", "journal_checksum", "logbsize=256k"]).is_ok());
    }

    #[test]
    fn a_quoted_comma_is_part_of_the_value() {
        let context = "context=\"system_u:object_r:container_file_t:s0:c1,c2\"";
        assert_eq!(flags(&[context, "noatime"]).unwrap().iter().count(), 2);
    }

    #[test]
    fn the_last_of_ro_and_rw_counts() {
        assert!(flags(&["rw", "noatime", "ro"]).unwrap().read_only());
        assert!(!flags(&["ro", "rw"]).unwrap().read_only());
        assert!(!flags(&[]).unwrap().read_only());
    }
}
