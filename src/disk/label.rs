//! Names and tags of what is created.

use super::{Disks, NewDisk};
use crate::model::{Tags, tag};

/// Longest name that the console takes.
const LONGEST: usize = 128;

/// The console's name for a CSI name: a letter first, then letters, digits, `:`, `_`, `.`, `-`; 2 to
/// 128 characters; never `auto…`, which snapshots may not be called. The CSI name itself, unchanged,
/// is in a tag.
pub(super) fn display_name(name: &str) -> String {
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '.' | '-');
    let mut shown: String = name
        .chars()
        .map(|c| if valid(c) { c } else { '-' })
        .collect();
    if !shown.starts_with(|c: char| c.is_ascii_alphabetic())
        || shown.len() < 2
        || shown.starts_with("auto")
        || shown.starts_with("http:")
        || shown.starts_with("https:")
    {
        shown.insert_str(0, "csi-");
    }
    shown.truncate(LONGEST);
    shown
}

impl Disks {
    /// The tags by which a resource is found and known as ours.
    pub(super) fn tags(&self, name: &str) -> Tags {
        Tags::from([
            (tag::CLUSTER.to_owned(), self.cluster.to_string()),
            (tag::CSI_NAME.to_owned(), name.to_owned()),
        ])
    }

    /// The tags of a new disk.
    pub(super) fn disk_tags(&self, new: &NewDisk) -> Tags {
        let mut tags = self.tags(&new.name);
        if let Some(source) = &new.clone_of {
            tags.insert(tag::CLONE_OF.to_owned(), source.to_string());
        }
        tags
    }

    /// The tag that all of this cluster's resources carry.
    pub(super) fn own(&self) -> Tags {
        Tags::from([(tag::CLUSTER.to_owned(), self.cluster.to_string())])
    }

    /// Whether the tags are of this cluster; else whose they are.
    pub(super) fn owns(&self, tags: &Tags) -> Result<(), Option<String>> {
        match tags.get(tag::CLUSTER) {
            Some(owner) if owner == self.cluster.as_str() => Ok(()),
            owner => Err(owner.cloned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_csi_name_becomes_a_name_that_the_console_takes() {
        assert_eq!(display_name("pvc-2f1b7c1e"), "pvc-2f1b7c1e");
        assert_eq!(display_name("9 lives/ü"), "csi-9-lives--");
        assert_eq!(display_name("auto-1"), "csi-auto-1");
        assert_eq!(display_name("x"), "csi-x");
        assert_eq!(display_name(&"é".repeat(128)).len(), 128);
    }
}
