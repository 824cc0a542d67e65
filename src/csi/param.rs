//! Parameters of a StorageClass. Names compare without case; an unknown name or a bad value is an
//! error that names both and says what is allowed. Nothing is ignored in silence.

use std::collections::HashMap;

use tonic::Status;

use crate::model::{Category, Filesystem, RegionId, ZoneId};

/// Parameters that the sidecars add for their own use; the driver takes any of them.
const SIDECARS: &str = "csi.storage.k8s.io/";
const ALLOWED: &str =
    "type, zoneId, regionId, fsType, readOnly, encrypted, kmsKeyId and csi.storage.k8s.io/*";

/// What a StorageClass asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// `type`: categories in order of preference; `available`, also when absent, is all of them.
    pub categories: Vec<Category>,
    /// `zoneId`: zones in order of preference; empty when absent.
    pub zones: Vec<ZoneId>,
    /// `regionId`: must be the driver's.
    pub region: Option<RegionId>,
    /// `fsType`: for volumes whose capability names none.
    pub fs_type: Option<Filesystem>,
    /// `readOnly`: every mount is read-only.
    pub read_only: bool,
    /// `encrypted`: encrypt at rest.
    pub encrypted: bool,
    /// `kmsKeyId`: the user's key to encrypt by.
    pub kms_key: Option<String>,
}

impl Class {
    /// Reads the parameters.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming key, value and what is allowed.
    pub fn read(parameters: &HashMap<String, String>) -> Result<Self, Status> {
        let mut class = Self {
            categories: Category::CREATABLE.to_vec(),
            zones: Vec::new(),
            region: None,
            fs_type: None,
            read_only: false,
            encrypted: false,
            kms_key: None,
        };
        let mut seen = HashMap::new();
        for (key, value) in parameters {
            let name = key.to_ascii_lowercase();
            if name.starts_with(SIDECARS) {
                continue;
            }
            if let Some(other) = seen.insert(name.clone(), key) {
                return Err(Status::invalid_argument(format!(
                    "parameters {other:?} and {key:?} are the same; give one"
                )));
            }
            let value = value.trim();
            match name.as_str() {
                "type" => class.categories = categories(key, value)?,
                "zoneid" => class.zones = list(key, value, "zone ids, separated by commas")?,
                "regionid" => class.region = Some(parse(key, value, "a region id")?),
                "fstype" => class.fs_type = Some(parse(key, value, "ext4, ext3, xfs, btrfs")?),
                "readonly" => class.read_only = boolean(key, value)?,
                "encrypted" => class.encrypted = boolean(key, value)?,
                "kmskeyid" => class.kms_key = Some(value.to_owned()).filter(|key| !key.is_empty()),
                _ => {
                    return Err(Status::invalid_argument(format!(
                        "unknown parameter {key:?} with value {value:?}; allowed are {ALLOWED}"
                    )));
                }
            }
        }
        if class.kms_key.is_some() && !class.encrypted {
            return Err(Status::invalid_argument(
                "parameter \"kmsKeyId\" needs \"encrypted\": \"true\"",
            ));
        }
        Ok(class)
    }
}

fn refuse(key: &str, value: &str, allowed: &str) -> Status {
    Status::invalid_argument(format!(
        "parameter {key:?} has value {value:?}; allowed: {allowed}"
    ))
}

fn boolean(key: &str, value: &str) -> Result<bool, Status> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Ok(true),
        "false" | "no" | "0" => Ok(false),
        _ => Err(refuse(key, value, "\"true\" or \"false\"")),
    }
}

fn parse<T: std::str::FromStr>(key: &str, value: &str, allowed: &str) -> Result<T, Status> {
    value.parse().map_err(|_| refuse(key, value, allowed))
}

fn list<T: std::str::FromStr + PartialEq>(
    key: &str,
    value: &str,
    allowed: &str,
) -> Result<Vec<T>, Status> {
    let mut items = Vec::new();
    for item in value.split(',') {
        let item = item
            .trim()
            .parse()
            .map_err(|_| refuse(key, value, allowed))?;
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Ok(items)
}

fn categories(key: &str, value: &str) -> Result<Vec<Category>, Status> {
    if value.eq_ignore_ascii_case("available") {
        return Ok(Category::CREATABLE.to_vec());
    }
    let lower = value.to_ascii_lowercase();
    let categories: Vec<Category> = list(key, &lower, "")?;
    if categories
        .iter()
        .any(|category| !Category::CREATABLE.contains(category))
    {
        let names: Vec<_> = Category::CREATABLE.iter().map(Category::as_str).collect();
        let allowed = format!(
            "available, or one or more, by commas, of {}",
            names.join(", ")
        );
        return Err(refuse(key, value, &allowed));
    }
    Ok(categories)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parameters: &[(&str, &str)]) -> Result<Class, String> {
        let map = parameters
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Class::read(&map).map_err(|status| status.message().to_owned())
    }

    #[test]
    fn a_storage_class_in_use_today_works_as_written() {
        let class = read(&[
            ("type", "available"),
            ("zoneId", "cn-beijing-c"),
            ("regionId", "cn-beijing"),
            ("fsType", "ext4"),
            ("readOnly", "false"),
        ])
        .unwrap();
        let names: Vec<_> = class.categories.iter().map(Category::as_str).collect();
        assert_eq!(names[..3], ["cloud_efficiency", "cloud_ssd", "cloud"]);
        assert_eq!(class.zones, ["cn-beijing-c".parse().unwrap()]);
        assert_eq!(class.region, Some("cn-beijing".parse().unwrap()));
        assert_eq!(
            (class.fs_type, class.read_only),
            (Some(Filesystem::Ext4), false)
        );
    }

    #[test]
    fn names_compare_without_case_and_lists_keep_their_order() {
        let class = read(&[
            ("TYPE", "cloud_essd, cloud_ssd"),
            ("zoneid", "cn-hangzhou-b,cn-hangzhou-a"),
        ]);
        let class = class.unwrap();
        assert_eq!(class.categories, [Category::CloudEssd, Category::CloudSsd]);
        assert_eq!(class.zones[0].as_str(), "cn-hangzhou-b");
    }

    #[test]
    fn an_unknown_key_is_refused_by_name_with_what_is_allowed() {
        assert_eq!(
            read(&[("fsTyp", "ext4")]).unwrap_err(),
            "unknown parameter \"fsTyp\" with value \"ext4\"; allowed are type, zoneId, regionId, \
             fsType, readOnly, encrypted, kmsKeyId and csi.storage.k8s.io/*"
        );
        assert!(read(&[("csi.storage.k8s.io/pvc/name", "data")]).is_ok());
    }

    #[test]
    fn a_bad_value_is_refused_by_key_and_value_with_what_is_allowed() {
        for (key, value, allowed) in [
            (
                "type",
                "cloud_sdd",
                "available, or one or more, by commas, of cloud_efficiency",
            ),
            ("type", "", "available, or"),
            ("readOnly", "maybe", "\"true\" or \"false\""),
            ("fsType", "ntfs", "ext4, ext3, xfs, btrfs"),
            ("zoneId", "a,,b", "zone ids, separated by commas"),
            ("regionId", "x y", "a region id"),
        ] {
            let refused = read(&[(key, value)]).unwrap_err();
            assert!(
                refused.contains(&format!("{key:?} has value {value:?}")),
                "{refused}"
            );
            assert!(refused.contains(allowed), "{refused}");
        }
    }

    #[test]
    fn a_key_given_twice_in_other_case_is_refused() {
        assert!(
            read(&[("type", "cloud"), ("Type", "cloud_ssd")])
                .unwrap_err()
                .contains("the same")
        );
    }

    #[test]
    fn a_key_needs_encryption() {
        assert!(
            read(&[("kmsKeyId", "k-1")])
                .unwrap_err()
                .contains("needs \"encrypted\"")
        );
        assert!(
            read(&[("kmsKeyId", "k-1"), ("encrypted", "TRUE")])
                .unwrap()
                .encrypted
        );
    }
}
