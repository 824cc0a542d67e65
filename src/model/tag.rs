//! The driver's tags of disks and snapshots, and the tags that users may set.

use ecs::model::{Snapshot, SnapshotGroupId, Tags};

/// The tag key of the cluster ID, which states the owner of a disk or snapshot.
pub const CLUSTER: &str = "diskplugin.csi.example/cluster-id";

/// The tag key of the CSI name for which a resource was created.
pub const CSI_NAME: &str = "diskplugin.csi.example/name";

/// Prefix of the tag keys of a disk that is attached read-only, followed by the instance ID.
pub const READ_ONLY_ON: &str = "diskplugin.csi.example/read-only-on-";

/// The tag key of the ID of a snapshot's group.
pub const GROUP: &str = "diskplugin.csi.example/snapshot-group";

/// The tag key of the ID of the disk from which a disk was cloned.
pub const CLONE_OF: &str = "diskplugin.csi.example/clone-of";

/// The tag key, on the temporary snapshot of a clone, of the CSI name of the new volume.
pub const CLONE_FOR: &str = "diskplugin.csi.example/clone-for";

/// The tag key, on a disk, of the days for which the cloud keeps the snapshot that is taken before its deletion.
pub const DELETION_SNAPSHOT_DAYS: &str = "diskplugin.csi.example/delete-snapshot-retention-days";

/// Maximum number of days for which the cloud can keep a snapshot; the minimum is one.
pub const MAX_RETENTION_DAYS: u32 = 65536;

/// The tag key, on the snapshot before a deletion, of its name.
pub const DELETION_OF: &str = "diskplugin.csi.example/deletion-of";

/// The tag key of the purpose of a snapshot other than a `VolumeSnapshot`; see [`CLONE`] and [`DELETION`].
pub const PURPOSE: &str = "diskplugin.csi.example/purpose";

/// The value of [`PURPOSE`] of the temporary snapshot of a clone.
pub const CLONE: &str = "clone";

/// The value of [`PURPOSE`] of the snapshot before a deletion.
pub const DELETION: &str = "deletion";

/// Maximum length of a tag value in characters.
pub const LONGEST_VALUE: usize = 128;

/// Maximum length of a tag key in characters.
pub const LONGEST_KEY: usize = 128;

/// Maximum number of tags of a resource.
pub const MAX_TAGS: usize = 20;

/// Prefix of the keys of the driver's own tags.
const OWN: &str = "diskplugin.csi.example/";

/// Number of the driver's own tags of each resource.
pub const OWN_COUNT: usize = 2;

/// Prefix of the keys of the tags that name the claim of a disk.
pub const CREATED_FOR: &str = "kubernetes.io/created-for/";

/// Whether a user may set this tag (ECS API, common rules of tags; the driver's own are its own).
///
/// # Errors
/// The tag, and why it is refused.
pub fn check(key: &str, value: &str) -> Result<(), String> {
    let long = |text: &str, most| text.chars().nth(most).is_some();
    let link = |text: &str| text.contains("http://") || text.contains("https://");
    let lower = key.to_ascii_lowercase();
    let why = if key.is_empty() || long(key, LONGEST_KEY) {
        "a key has 1 to 128 characters"
    } else if long(value, LONGEST_VALUE) {
        "a value has at most 128 characters"
    } else if link(key) || link(value) {
        "the cloud allows neither http:// nor https:// in tags"
    } else if lower.starts_with("aliyun") || lower.starts_with("acs:") {
        "the cloud reserves keys that begin with aliyun or acs:"
    } else if lower.starts_with(OWN) || lower.starts_with(CREATED_FOR) {
        "keys that begin with diskplugin.csi.example/ or kubernetes.io/created-for/ are the driver's \
         own"
    } else if key.chars().chain(value.chars()).any(char::is_control) {
        "it has control characters"
    } else {
        return Ok(());
    };
    Err(format!("tag {key:?} with value {value:?} is refused: {why}"))
}

/// The group of a snapshot: that of its tag, otherwise of the name that the cloud gave it.
pub fn group_of(snapshot: &Snapshot) -> Option<SnapshotGroupId> {
    group_id(&snapshot.tags, snapshot.group.as_ref()).and_then(|id| id.parse().ok())
}

/// The ID of the group of a snapshot with these tags and this group in its row. A tag that is not an ID does not count.
pub fn group_id<'a>(tags: &'a Tags, row: Option<&'a SnapshotGroupId>) -> Option<&'a str> {
    let tagged = tags.get(GROUP).map(String::as_str);
    let tagged = tagged.filter(|id| id.parse::<SnapshotGroupId>().is_ok());
    tagged.or(row.map(SnapshotGroupId::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_a_group_takes_precedence_over_the_row() {
        let row: SnapshotGroupId = "ssg-2".parse().unwrap();
        let tagged = |id: &str| Tags::from([(GROUP.to_owned(), id.to_owned())]);
        assert_eq!(group_id(&tagged("ssg-1"), Some(&row)), Some("ssg-1"));
        for tags in [tagged(""), tagged("none"), Tags::new()] {
            assert_eq!(group_id(&tags, Some(&row)), Some("ssg-2"), "{tags:?}");
            assert_eq!(group_id(&tags, None), None);
        }
    }

    #[test]
    fn a_tag_of_the_user_may_be_long_but_never_reserved() {
        assert!(check("team", "").is_ok());
        assert!(check(&"ü".repeat(128), &"ü".repeat(128)).is_ok());
        for (key, value) in [
            ("", "x"),
            (&*"k".repeat(129), "x"),
            ("k", &*"v".repeat(129)),
            ("k", "http://x"),
            ("aliyunx", ""),
            ("ACS:k", ""),
            (CLUSTER, "another"),
            ("k", "a\nb"),
        ] {
            assert!(check(key, value).is_err(), "{key}");
        }
    }
}
