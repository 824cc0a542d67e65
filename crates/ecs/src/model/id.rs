//! Every id is its own type, parsed once at the edge.

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
pub const PLAIN: &str = "letters, digits, '-', '_' and '.', at most 64 characters";

/// Whether the text satisfies [`PLAIN`].
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

/// A type for IDs of one kind: its name, the kind in words, and the prefix, or the rule in words and as a function.
#[macro_export]
macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $prefix:literal) => {
        $crate::id!($(#[$doc])* $name, $kind,
            concat!("\"", $prefix, "\" followed by letters and digits, at most 64 characters"),
            |text| has_prefix(text, $prefix));
    };
    ($(#[$doc:meta])* $name:ident, $kind:literal, $rule:expr, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// The ID as in the API.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::model::InvalidId;

            fn from_str(text: &str) -> Result<Self, $crate::model::InvalidId> {
                let valid: fn(&str) -> bool = $check;
                if valid(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err($crate::model::InvalidId { kind: $kind, value: text.to_owned(), rule: $rule })
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::model::InvalidId;

            fn try_from(text: String) -> Result<Self, $crate::model::InvalidId> {
                text.parse()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
    RegionId, "region ID", PLAIN, is_plain
);
id!(
    /// A zone of a region, such as `cn-beijing-c`.
    ZoneId, "zone ID", PLAIN, is_plain
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
