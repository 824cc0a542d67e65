use super::Result;
use super::error::rejected;
use crate::model::{ClusterId, Failure, Tags, tag};

const MAX_LENGTH: usize = 128;

/// The console name for a CSI name: 2 to 128 characters; a letter first, then letters, digits, `:`, `_`, `.`, `-`; not
/// `auto…`, which is reserved for automatic snapshots. A tag has the unchanged CSI name.
pub(super) fn display_name(name: &str) -> String {
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '.' | '-');
    let mut shown: String = name.chars().map(|c| if valid(c) { c } else { '-' }).collect();
    if !shown.starts_with(|c: char| c.is_ascii_alphabetic())
        || shown.len() < 2
        || shown.starts_with("auto")
        || shown.starts_with("http:")
        || shown.starts_with("https:")
    {
        shown.insert_str(0, "csi-");
    }
    shown.truncate(MAX_LENGTH);
    shown
}

/// The key of a creation, derived from the tags of the resource: snapshots of different purposes can have the same
/// name. CSI names have no control characters.
pub(super) fn creation_key(tags: &Tags) -> Option<String> {
    let of = |key, prefix| tags.get(key).map(|name| format!("{prefix}{name}"));
    let special = of(tag::CLONE_FOR, "\0").or_else(|| of(tag::DELETION_OF, "\u{1}"));
    special.or_else(|| tags.get(tag::CSI_NAME).cloned())
}

/// The cluster that owns the created resources, identified by a tag.
#[derive(Debug, Clone)]
pub(super) struct Owner {
    pub(super) cluster: ClusterId,
}

impl Owner {
    pub(super) fn tags(&self) -> Tags {
        Tags::from([(tag::CLUSTER.to_owned(), self.cluster.to_string())])
    }

    pub(super) fn name_tags(&self, name: &str) -> Tags {
        let mut tags = self.tags();
        tags.insert(tag::CSI_NAME.to_owned(), name.to_owned());
        tags
    }

    pub(super) fn clone_tags(&self, volume: &str) -> Tags {
        self.purpose_tags(tag::CLONE, tag::CLONE_FOR, volume)
    }

    pub(super) fn purpose_tags(&self, purpose: &str, key: &str, name: &str) -> Tags {
        let mut tags = self.tags();
        tags.insert(tag::PURPOSE.to_owned(), purpose.to_owned());
        tags.insert(key.to_owned(), name.to_owned());
        tags
    }

    pub(super) fn owns(&self, tags: &Tags) -> bool {
        tags.get(tag::CLUSTER)
            .is_some_and(|owner| owner == self.cluster.as_str())
    }

    pub(super) fn check_owned(&self, resource: &str, tags: &Tags) -> Result<()> {
        if self.owns(tags) {
            return Ok(());
        }
        let (tag, cluster) = (tag::CLUSTER, &self.cluster);
        let owner = tags.get(tag).map_or("missing", String::as_str);
        let text = format!(
            "{resource} is not deleted: its tag {tag} is {owner}, and this driver deletes only what cluster {cluster} created"
        );
        Err(rejected(Failure::NotOwned, text, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_name_is_valid_for_any_csi_name() {
        assert_eq!(display_name("pvc-2f1b7c1e"), "pvc-2f1b7c1e");
        assert_eq!(display_name("9 lives/ü"), "csi-9-lives--");
        assert_eq!(display_name("auto-1"), "csi-auto-1");
        assert_eq!(display_name("x"), "csi-x");
        assert_eq!(display_name(&"é".repeat(128)).len(), 128);
    }
}
