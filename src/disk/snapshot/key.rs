//! The keys under which creations are remembered and listed: snapshots, clones and groups may have the same names.

use crate::model::{Tags, tag};

/// The key of a snapshot by its tags, if it has a name.
pub(super) fn of_snapshot(tags: &Tags) -> Option<String> {
    let volume = tags.get(tag::CLONE_FOR).map(|volume| of_clone(volume));
    volume.or_else(|| tags.get(tag::CSI_NAME).cloned())
}

/// No CSI name has a control character.
pub(super) fn of_clone(volume: &str) -> String {
    format!("\0{volume}")
}

/// The key of a group by its tags, if it has a name.
pub(super) fn of_group_tags(tags: &Tags) -> Option<String> {
    tags.get(tag::CSI_NAME).map(|name| of_group(name))
}

/// No CSI name has a control character.
pub(super) fn of_group(name: &str) -> String {
    format!("\x01{name}")
}
