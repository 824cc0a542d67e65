//! Every id is its own type, parsed once at the edge.

use std::fmt;
use std::str::FromStr;

/// A text that is not an ID of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} is not a valid {kind}; expected: {rule}")]
pub struct InvalidId {
    /// The expected kind: "disk ID".
    pub kind: &'static str,
    pub value: String,
    pub rule: &'static str,
}

/// Maximum length. The cloud's IDs have 22 characters.
const LONGEST: usize = 64;

/// The rule of [`RegionId`] and [`ZoneId`].
#[must_use]
pub fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= LONGEST
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && !text.starts_with('.')
}

fn has_prefix(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|body| {
        text.len() <= LONGEST && !body.is_empty() && body.bytes().all(|b| b.is_ascii_alphanumeric())
    })
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $prefix:literal) => {
        id!($(#[$doc])* $name, $kind,
            concat!("\"", $prefix, "\" followed by letters and digits, at most 64 characters"),
            |text| has_prefix(text, $prefix));
    };
    ($(#[$doc:meta])* $name:ident, $kind:literal, $rule:expr, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The ID as in the API.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let valid: fn(&str) -> bool = $check;
                if valid(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(InvalidId { kind: $kind, value: text.to_owned(), rule: $rule })
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// A cloud disk: `d-` and letters or digits.
    DiskId, "disk ID", "d-"
);
id!(
    /// A snapshot of a disk: `s-` and letters or digits.
    SnapshotId, "snapshot ID", "s-"
);
id!(
    /// A snapshot group: `ssg-` and letters or digits.
    SnapshotGroupId, "snapshot group ID", "ssg-"
);
id!(
    /// An instance: `i-` and letters or digits.
    InstanceId, "instance ID", "i-"
);
id!(
    /// A task of the cloud, such as the change of a disk's category: `t-` and letters or digits.
    TaskId, "task ID", "t-"
);
id!(
    /// A region, such as `cn-beijing`.
    RegionId, "region ID", "letters, digits, '-', '_' and '.', at most 64 characters", is_plain
);
id!(
    /// A zone of a region, such as `cn-beijing-c`.
    ZoneId, "zone ID", "letters, digits, '-', '_' and '.', at most 64 characters", is_plain
);
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_another_kind_is_rejected_with_the_rule() {
        let rejected = "i-bp1abc".parse::<DiskId>().unwrap_err();
        assert_eq!(
            rejected.to_string(),
            "\"i-bp1abc\" is not a valid disk ID; expected: \"d-\" followed by letters and digits, at most 64 characters"
        );
    }

    #[test]
    fn a_path_is_never_an_id() {
        for text in ["d-../x", "d-", "d-a/b", "", "d-a b"] {
            assert!(text.parse::<DiskId>().is_err(), "{text}");
        }
        assert!("..".parse::<ZoneId>().is_err());
    }

    #[test]
    fn an_id_is_displayed_as_in_the_api() {
        let id: DiskId = "d-bp18um4r4f2fve24k7qz".parse().unwrap();
        assert_eq!(id.to_string(), "d-bp18um4r4f2fve24k7qz");
    }
}
