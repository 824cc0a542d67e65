//! Parameters of a StorageClass. Names compare without case; an unknown name or a bad value is an
//! error that names both and says what is allowed. Nothing is ignored in silence.

use std::collections::HashMap;

use tonic::Status;

use self::value::{boolean, list, parse, refuse};
use crate::model::{Category, Filesystem, RegionId, ZoneId};

pub mod mutable;
#[cfg(test)]
mod tests;
mod value;

/// Parameters that the sidecars add for their own use; the driver takes any of them.
const SIDECARS: &str = "csi.storage.k8s.io/";
/// Before the key of a tag, in lower case.
const TAGS: &str = "disktags/";
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
                return Err(twice(other, key));
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

/// The rest of a name that begins like this, in whatever case.
fn strip_prefix<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = name.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn twice(one: &str, other: &str) -> Status {
    Status::invalid_argument(format!(
        "parameters {one:?} and {other:?} are the same; give one"
    ))
}
