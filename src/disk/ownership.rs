//! Names and tags of what is created.

use super::Result;
use super::error::refused;
use crate::model::{ClusterId, Failure, Tags, tag};

/// Maximum length of a name in the console.
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

/// The key under which a creation is remembered and listed, by the tags of the resource: a snapshot and the intermediate
/// snapshot of a clone may have the same name. No CSI name has a control character.
pub(super) fn key_of(tags: &Tags) -> Option<String> {
    let clone = tags.get(tag::CLONE_FOR).map(|name| format!("\0{name}"));
    clone.or_else(|| tags.get(tag::CSI_NAME).cloned())
}

/// The cluster that owns what this driver creates, by the tags that its resources carry.
#[derive(Debug, Clone)]
pub(super) struct Owner {
    pub(super) cluster: ClusterId,
}

impl Owner {
    pub(super) fn tags(&self) -> Tags {
        Tags::from([(tag::CLUSTER.to_owned(), self.cluster.to_string())])
    }

    /// The tags by which the resource of a CSI name is found.
    pub(super) fn tags_of(&self, name: &str) -> Tags {
        let mut tags = self.tags();
        tags.insert(tag::CSI_NAME.to_owned(), name.to_owned());
        tags
    }

    pub(super) fn clone_tags(&self, volume: &str) -> Tags {
        let mut tags = self.tags();
        tags.insert(tag::PURPOSE.to_owned(), tag::CLONE.to_owned());
        tags.insert(tag::CLONE_FOR.to_owned(), volume.to_owned());
        tags
    }

    pub(super) fn has(&self, tags: &Tags) -> bool {
        tags.get(tag::CLUSTER)
            .is_some_and(|owner| owner == self.cluster.as_str())
    }

    pub(super) fn require(&self, what: &str, tags: &Tags) -> Result<()> {
        if self.has(tags) {
            return Ok(());
        }
        let (tag, cluster) = (tag::CLUSTER, &self.cluster);
        let owner = tags.get(tag).map_or("missing", String::as_str);
        let text = format!(
            "{what} is not deleted: its tag {tag} is {owner}, and this driver deletes only what cluster {cluster} created"
        );
        Err(refused(Failure::NotOwned, text, None))
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
