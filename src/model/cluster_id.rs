//! The cluster whose disks this driver owns; it is in a tag of each disk and snapshot.

use std::fmt;
use std::str::FromStr;

use ecs::model::InvalidId;
use ecs::model::id::is_plain;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterId(String);

impl ClusterId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ClusterId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let invalid = || InvalidId {
            kind: "cluster ID",
            value: text.to_owned(),
            rule: "letters, digits, '-', '_' and '.', at most 64 characters",
        };
        is_plain(text).then(|| Self(text.to_owned())).ok_or_else(invalid)
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
