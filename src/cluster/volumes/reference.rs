//! Which disks and snapshots the objects refer to, or wait for.

use super::object::Volumes;
use crate::model::{SnapshotGroupId, Tags, tag};

/// Characters of a UID.
const UID_LENGTH: usize = 36;

/// Digits of a UID that a name has at least, if the sidecar shortens it (`--volume-name-uuid-length`,
/// `--snapshot-name-uuid-length`).
const MIN_DIGITS: usize = 4;

/// Positions of the hyphens of a UID.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// A disk or snapshot of the cloud.
#[derive(Debug, Clone, Copy)]
pub struct Resource<'a> {
    pub id: &'a str,
    pub tags: &'a Tags,
    /// The group of a snapshot.
    pub group: Option<&'a str>,
}

impl<'a> Resource<'a> {
    pub fn new(id: &'a str, tags: &'a Tags, group: Option<&'a SnapshotGroupId>) -> Self {
        let group = tag::group_id(tags, group);
        Self { id, tags, group }
    }
}

impl Volumes {
    /// The IDs that any object refers to. With duplicates.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let volumes = self.volumes.iter().map(|volume| volume.handle.as_str());
        let contents = self.contents.iter().flat_map(|content| {
            let used = content.used.iter().map(String::as_str);
            used.chain(content.handle.as_deref())
        });
        let others = self.other_handles.iter().map(String::as_str);
        volumes.chain(contents).chain(others)
    }

    /// Whether an object refers to the resource or its group, or waits for it.
    pub fn uses(&self, resource: &Resource<'_>) -> bool {
        let is_wanted = |id: &str| id == resource.id || Some(id) == resource.group;
        self.ids().any(is_wanted) || self.waits_for(resource.tags)
    }

    /// Whether a claim, or a content without a handle, waits for a resource with these tags, or for the clone that is
    /// made of it. The snapshot before a deletion has the tags of an earlier claim.
    pub fn waits_for(&self, tags: &Tags) -> bool {
        if tags.contains_key(tag::DELETION_OF) {
            return false;
        }
        let names = [tag::CSI_NAME, tag::CLONE_FOR];
        let mut names = names.iter().filter_map(|key| tags.get(*key));
        names.any(|name| self.is_name_of_claim(name) || self.is_name_of_content(name))
            || self.is_for_pending_claim(tags)
    }

    fn is_name_of_claim(&self, name: &str) -> bool {
        uids(name).any(|start| {
            let mut from = self.claims.range(start.clone()..);
            from.next().is_some_and(|uid| uid.starts_with(&start))
        })
    }

    fn is_name_of_content(&self, name: &str) -> bool {
        let waiting = self.contents.iter().filter(|content| content.handle.is_none());
        let mut waiting = waiting.filter_map(|content| content.snapshot_uid.as_deref());
        waiting.any(|uid| uids(name).any(|start| uid.starts_with(&start)))
    }

    /// By the tags of external-provisioner's `--extra-create-metadata`.
    fn is_for_pending_claim(&self, tags: &Tags) -> bool {
        let value = |name| tags.get(&format!("{}{name}", tag::CREATED_FOR));
        let claim = value("pvc/namespace").zip(value("pvc/name"));
        claim.is_some_and(|(namespace, name)| self.pending_claims.contains(&format!("{namespace}/{name}")))
    }
}

/// The beginnings of the UIDs that a CSI name can end with, whatever its prefix: the complete UID, or its first digits
/// without hyphens.
fn uids(name: &str) -> impl Iterator<Item = String> {
    let complete = name.get(name.len().saturating_sub(UID_LENGTH)..);
    let complete = complete.filter(|uid| uid.len() == UID_LENGTH);
    let digits = name.rsplit('-').next().unwrap_or_default();
    let is_digits = digits.len() >= MIN_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let shortened = is_digits.then(|| with_hyphens(digits));
    complete.map(str::to_owned).into_iter().chain(shortened)
}

fn with_hyphens(digits: &str) -> String {
    let mut uid = String::with_capacity(UID_LENGTH);
    for digit in digits.chars() {
        if HYPHENS.contains(&uid.len()) {
            uid.push('-');
        }
        uid.push(digit);
    }
    uid
}

#[cfg(test)]
mod tests {
    use super::super::object::{Content, ContentKind};
    use super::*;

    const UID: &str = "6a0285cc-35e3-4a23-bde8-1b1f0fc2fe26";

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(own).collect()
    }

    #[test]
    fn a_claim_waits_for_its_disk_and_for_the_snapshot_of_its_clone_under_any_name() {
        let volumes = Volumes {
            claims: [UID.to_owned(), "ffffffff-0000-0000-0000-000000000000".to_owned()].into(),
            ..Volumes::default()
        };
        for (name, expected) in [
            (format!("pvc-{UID}"), true),
            (format!("team-a-{UID}"), true),
            ("pvc-6a0285cc35e34a23bde8".to_owned(), true),
            ("pvc-6a0285cc35e34a23bde81b1f0fc2fe26".to_owned(), true),
            ("pvc-6a0285cc".to_owned(), true),
            ("pvc-6a0285cd".to_owned(), false),
            ("pvc-6a0".to_owned(), false),
            ("pvc-6a0285cc-35e3-4a23-bde8-000000000000".to_owned(), false),
            ("data".to_owned(), false),
        ] {
            for key in [tag::CSI_NAME, tag::CLONE_FOR] {
                assert_eq!(volumes.waits_for(&tags(&[(key, &name)])), expected, "{key}={name}");
            }
        }
    }

    #[test]
    fn a_content_without_a_handle_waits_for_its_snapshot_and_uses_its_source() {
        let mut volumes = Volumes {
            contents: vec![Content {
                kind: ContentKind::Snapshot,
                name: "content".to_owned(),
                handle: None,
                snapshot: None,
                snapshot_uid: Some(UID.to_owned()),
                used: vec!["d-source".to_owned()],
            }],
            ..Volumes::default()
        };
        let named = tags(&[(tag::CSI_NAME, &format!("team-snap-{UID}"))]);
        assert!(volumes.waits_for(&named));
        let source = Resource {
            id: "d-source",
            tags: &Tags::new(),
            group: None,
        };
        assert!(volumes.uses(&source));
        volumes.contents[0].handle = Some("s-1".to_owned());
        assert!(!volumes.waits_for(&named));
    }

    #[test]
    fn a_claim_without_a_volume_waits_for_the_disk_with_its_name_in_the_tags() {
        let volumes = Volumes {
            pending_claims: ["team/data".to_owned()].into(),
            ..Volumes::default()
        };
        let created_for = |name: &str| {
            let key = |part| format!("{}{part}", tag::CREATED_FOR);
            tags(&[(&key("pvc/namespace"), "team"), (&key("pvc/name"), name)])
        };
        assert!(volumes.waits_for(&created_for("data")));
        assert!(!volumes.waits_for(&created_for("other")));
    }

    #[test]
    fn a_group_uses_its_snapshots() {
        let volumes = Volumes {
            other_handles: ["ssg-1".to_owned()].into(),
            ..Volumes::default()
        };
        let tags = Tags::new();
        let of = |group| Resource {
            id: "s-1",
            tags: &tags,
            group,
        };
        assert!(volumes.uses(&of(Some("ssg-1"))));
        assert!(!volumes.uses(&of(Some("ssg-2"))) && !volumes.uses(&of(None)));
    }
}
