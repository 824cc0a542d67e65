//! Settings of a volume's block device in sysfs: the StorageClass parameter `sysConfig`, in the format of the vendor's
//! driver. Only settings that affect nothing but the speed of this device are allowed.

use std::collections::BTreeMap;
use std::fmt;

use super::value::{self, InvalidTuning};
use crate::model::context;

#[derive(Debug, Clone, Copy)]
enum Allowed {
    Number(u64, u64),
    Word(&'static [&'static str]),
}

use Allowed::{Number, Word};

/// Settings by their paths below `/sys/block/NAME` (Linux, Documentation/ABI/stable/sysfs-block).
const SETTINGS: [(&str, Allowed); 7] = [
    ("queue/max_sectors_kb", Number(4, 32 << 10)),
    ("queue/nomerges", Number(0, 2)),
    ("queue/nr_requests", Number(4, 10_000)),
    ("queue/read_ahead_kb", Number(0, 64 << 10)),
    ("queue/rq_affinity", Number(0, 2)),
    ("queue/scheduler", Word(&["none", "mq-deadline", "kyber", "bfq"])),
    ("queue/wbt_lat_usec", Number(0, 10_000_000)),
];

/// A name of the vendor's driver for a setting of the same device.
const ALIAS: (&str, &str) = ("bdi/read_ahead_kb", "queue/read_ahead_kb");

/// Values by the path of the setting, such as `queue/read_ahead_kb`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockSettings(BTreeMap<&'static str, String>);

impl BlockSettings {
    /// Parses `key=value,key=value`.
    pub(super) fn parse(text: &str) -> Result<Self, InvalidTuning> {
        let refuse = |allowed: &str| InvalidTuning::new(context::SYS_CONFIG, text, allowed);
        let mut settings = BTreeMap::new();
        for entry in text.split(',').map(str::trim).filter(|e| !e.is_empty()) {
            let (key, value) = entry.split_once('=').ok_or_else(|| refuse(FORMAT))?;
            let (key, value) = (key.trim(), value.trim());
            let key = if key == ALIAS.0 { ALIAS.1 } else { key };
            let known = SETTINGS.iter().find(|(name, _)| *name == key);
            let (name, allowed) = known.ok_or_else(|| refuse(&SETTINGS.map(|(name, _)| name).join(", ")))?;
            if !allowed.admits(value) {
                return Err(refuse(&format!("{name} accepts {}", allowed.expected())));
            }
            if settings.insert(*name, value.to_owned()).is_some() {
                return Err(refuse(&format!("{name} only once")));
            }
        }
        Ok(Self(settings))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Paths below `/sys/block/NAME`, and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

/// The value in the volume context.
impl fmt::Display for BlockSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries: Vec<String> = self.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&entries.join(","))
    }
}

const FORMAT: &str = "KEY=VALUE, separated by commas, such as queue/read_ahead_kb=4096";

impl Allowed {
    fn admits(self, value: &str) -> bool {
        match self {
            Self::Number(from, to) => value::number(value).is_some_and(|n| (from..=to).contains(&n)),
            Self::Word(words) => words.contains(&value),
        }
    }

    fn expected(self) -> String {
        match self {
            Self::Number(from, to) => format!("a whole number from {from} to {to}"),
            Self::Word(words) => words.join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed_and_formatted() {
        let text = "queue/scheduler=mq-deadline, bdi/read_ahead_kb=4096,";
        let settings = BlockSettings::parse(text).unwrap();
        assert_eq!(
            settings.to_string(),
            "queue/read_ahead_kb=4096,queue/scheduler=mq-deadline"
        );
        assert_eq!(BlockSettings::parse(&settings.to_string()), Ok(settings));
        assert!(BlockSettings::parse("").unwrap().is_empty());
    }

    #[test]
    fn unknown_settings_and_values_are_rejected_with_the_allowed_ones() {
        for (text, allowed) in [
            ("queue/read_ahead_kb", "KEY=VALUE"),
            ("queue/rotational=0", "queue/nr_requests"),
            ("../../power/control=on", "queue/nr_requests"),
            ("ro=1", "queue/nr_requests"),
            ("queue/read_ahead_kb=-1", "a whole number from 0 to 65536"),
            ("queue/nr_requests=3", "a whole number from 4 to 10000"),
            ("queue/scheduler=cfq", "none, mq-deadline, kyber, bfq"),
            ("queue/nomerges=1,queue/nomerges=2", "only once"),
        ] {
            let error = BlockSettings::parse(text).unwrap_err().to_string();
            assert!(error.contains("\"sysConfig\"") && error.contains(allowed), "{error}");
        }
    }
}
