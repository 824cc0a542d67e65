use super::value::{Map, Result, conflict, entries, identifier, number};
use crate::csi::request::error::Error;
use crate::model::{Tags, tag as rules};

const ALLOWED: &str = "retentionDays, resourceGroupId, snapshotTags/<key> and csi.storage.k8s.io/*";
const ALLOWED_FOR_GROUPS: &str = "resourceGroupId, deletionPolicy, snapshotTags/<key> and csi.storage.k8s.io/*";

/// Prefix of tags, in lower case.
const TAGS: &str = "snapshottags/";

/// Parameters that external-snapshotter adds with `--extra-create-metadata`; they become tags with the same keys.
const METADATA: [&str; 6] = [
    "csi.storage.k8s.io/volumesnapshot/name",
    "csi.storage.k8s.io/volumesnapshot/namespace",
    "csi.storage.k8s.io/volumesnapshotcontent/name",
    "csi.storage.k8s.io/volumegroupsnapshot/name",
    "csi.storage.k8s.io/volumegroupsnapshot/namespace",
    "csi.storage.k8s.io/volumegroupsnapshotcontent/name",
];

/// Maximum number of user tags: the limit of the cloud less three tags of the driver and three of the snapshotter.
const MAX_USER_TAGS: usize = rules::MAX_TAGS - 6;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SnapshotClass {
    /// `retentionDays`: days until the cloud deletes the snapshot; `None` is never.
    pub retention_days: Option<u32>,
    pub resource_group: Option<String>,
    pub tags: Tags,
}

impl SnapshotClass {
    pub fn read(parameters: &Map) -> Result<Self> {
        Self::of(parameters, false)
    }

    /// Parses a VolumeGroupSnapshotClass. It has no `retentionDays`: the cloud keeps groups until they are deleted.
    /// `deletionPolicy` is accepted and ignored, because the Kubernetes storage e2e tests set it.
    pub fn read_of_group(parameters: &Map) -> Result<Self> {
        Self::of(parameters, true)
    }

    fn of(parameters: &Map, group: bool) -> Result<Self> {
        let (entries, tags) = entries("parameter", parameters, TAGS)?;
        let mut class = Self {
            tags,
            ..Self::default()
        };
        for entry in entries {
            let (field, value) = (&*entry.field, entry.value);
            match &*entry.name {
                "retentiondays" if !group => {
                    class.retention_days = Some(number(field, value, "days", 1, rules::MAX_RETENTION_DAYS)?);
                }
                "resourcegroupid" => class.resource_group = identifier(field, value)?,
                "deletionpolicy" if group => {
                    if !["Delete", "Retain"].contains(&value) {
                        return Err(Error::value(field, value, "Delete or Retain"));
                    }
                }
                _ if group => return Err(Error::unknown_key(field, value, ALLOWED_FOR_GROUPS)),
                _ => return Err(Error::unknown_key(field, value, ALLOWED)),
            }
        }
        if class.tags.len() > MAX_USER_TAGS {
            let why = format!(
                "is set {} times: at most {MAX_USER_TAGS} are allowed, because a snapshot has at most {} tags and \
                 the driver needs some",
                class.tags.len(),
                rules::MAX_TAGS
            );
            return Err(conflict("snapshotTags/<key>", &why));
        }
        let metadata = parameters.iter().filter_map(|(key, value)| {
            let known = METADATA.into_iter().find(|known| known.eq_ignore_ascii_case(key))?;
            Some((known.to_owned(), truncated(value.trim())))
        });
        class.tags.extend(metadata);
        Ok(class)
    }
}

/// Names in Kubernetes may be longer than a tag value.
fn truncated(value: &str) -> String {
    value.chars().take(rules::LONGEST_VALUE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = fn(&Map) -> Result<SnapshotClass>;

    fn of(read: Read, pairs: &[(&str, &str)]) -> Result<SnapshotClass, String> {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        read(&pairs.iter().map(own).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn parameters_are_case_insensitive_and_metadata_becomes_tags() {
        let class = of(
            SnapshotClass::read,
            &[
                ("RETENTIONDAYS", " 30 "),
                ("resourceGroupId", "rg-1"),
                ("snapshotTags/Team", "blue"),
                ("csi.storage.k8s.io/volumesnapshot/name", "nightly"),
                ("csi.storage.k8s.io/snapshotter-secret-name", "x"),
            ],
        );
        let class = class.unwrap();
        assert_eq!(class.retention_days, Some(30));
        assert_eq!(class.resource_group.as_deref(), Some("rg-1"));
        let tags: Vec<_> = class.tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(tags, ["Team=blue", "csi.storage.k8s.io/volumesnapshot/name=nightly"]);
        assert_eq!(of(SnapshotClass::read, &[]).unwrap(), SnapshotClass::default());
    }

    #[test]
    fn unknown_invalid_and_duplicate_parameters_are_rejected_by_name_and_value() {
        for (key, value) in [
            ("snapshotType", "flash"),
            ("retentionDays", "0"),
            ("retentionDays", "65537"),
            ("retentionDays", "soon"),
            ("retentionDays", "-1"),
            ("retentionDays", ""),
        ] {
            let refused = of(SnapshotClass::read, &[(key, value)]).unwrap_err();
            assert!(
                refused.contains(&format!("{key:?}")) && refused.contains(&format!("{value:?}")),
                "{refused}"
            );
        }
        let twice = [("retentionDays", "1"), ("RetentionDays", "1")];
        assert!(of(SnapshotClass::read, &twice).is_err());
        for key in ["snapshotTags/", "snapshotTags/acs:x"] {
            let refused = of(SnapshotClass::read, &[(key, "1")]).unwrap_err();
            assert!(refused.contains(key), "{refused}");
        }
    }

    #[test]
    fn a_group_has_no_retention_days() {
        let refused = of(SnapshotClass::read_of_group, &[("retentionDays", "7")]).unwrap_err();
        assert!(refused.contains("\"retentionDays\""), "{refused}");
        assert!(!refused.contains("allowed: retentionDays"), "{refused}");
        let class = of(
            SnapshotClass::read_of_group,
            &[
                ("resourceGroupId", "rg-1"),
                ("csi.storage.k8s.io/volumegroupsnapshot/namespace", "db"),
            ],
        );
        assert_eq!(class.unwrap().tags.len(), 1);
    }

    #[test]
    fn only_a_group_accepts_a_deletion_policy() {
        for policy in ["Delete", "Retain"] {
            let class = of(SnapshotClass::read_of_group, &[("deletionPolicy", policy)]);
            assert_eq!(class.unwrap(), SnapshotClass::default());
        }
        let refused = of(SnapshotClass::read_of_group, &[("deletionPolicy", "keep")]);
        assert!(refused.unwrap_err().contains("\"keep\""));
        let refused = of(SnapshotClass::read, &[("deletionPolicy", "Delete")]).unwrap_err();
        assert!(refused.contains("unknown parameter"), "{refused}");
    }

    #[test]
    fn long_names_are_truncated_and_too_many_tags_are_rejected() {
        let long = "n".repeat(253);
        let name = [("csi.storage.k8s.io/volumesnapshot/name", long.as_str())];
        let class = of(SnapshotClass::read, &name).unwrap();
        assert_eq!(class.tags.values().next().map(String::len), Some(128));
        let keys: Vec<_> = (0..15).map(|n| format!("snapshotTags/k{n}")).collect();
        let pairs: Vec<_> = keys.iter().map(|key| (key.as_str(), "v")).collect();
        let refused = of(SnapshotClass::read, &pairs).unwrap_err();
        assert!(refused.contains("at most 14"), "{refused}");
    }
}
