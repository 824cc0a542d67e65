//! Mutable parameters: those of a VolumeAttributesClass. CreateVolume lets them override the class,
//! ControllerModifyVolume applies them to a disk that is there.

use std::collections::HashMap;

use tonic::Status;

use super::value::{boolean, iops, parse, refuse, tag, unfit};
use super::{SIDECARS, TAGS, strip_prefix};
use crate::model::category::MOST_PROVISIONED_IOPS;
use crate::model::{Category, Change};

const ALLOWED: &str = "type, performanceLevel, provisionedIops, burstingEnabled and diskTags/<key>";

/// Reads mutable parameters. Names compare without case; those of the sidecars
/// (`csi.storage.k8s.io/*`) are passed over.
///
/// # Errors
/// `INVALID_ARGUMENT` naming key, value and what is allowed: for an unknown key, a bad value, two
/// spellings of one key, and a level or IOPS for a category that has none.
pub fn read(parameters: &HashMap<String, String>) -> Result<Change, Status> {
    let mut change = Change::default();
    let mut seen = HashMap::new();
    for (key, value) in parameters {
        let name = key.to_ascii_lowercase();
        if name.starts_with(SIDECARS) {
            continue;
        }
        let value = value.trim();
        if let Some(name) = strip_prefix(key, TAGS) {
            tag(key, name, value, &mut change.tags)?;
            continue;
        }
        if let Some(other) = seen.insert(name.clone(), key) {
            return Err(super::twice(other, key));
        }
        match name.as_str() {
            "type" => change.category = Some(category(key, value)?),
            "performancelevel" => {
                change.level = Some(parse(key, value, "PL0, PL1, PL2, PL3")?);
            }
            "provisionediops" => {
                change.provisioned_iops = Some(iops(key, value, MOST_PROVISIONED_IOPS)?);
            }
            "burstingenabled" => change.bursting = Some(boolean(key, value)?),
            _ => {
                return Err(Status::invalid_argument(format!(
                    "unknown mutable parameter {key:?} with value {value:?}; allowed are {ALLOWED}"
                )));
            }
        }
    }
    agrees(&change)?;
    Ok(change)
}

fn category(key: &str, value: &str) -> Result<Category, Status> {
    let Ok(category): Result<Category, _> = value.to_ascii_lowercase().parse();
    if !Category::KNOWN.contains(&category) {
        let names: Vec<_> = Category::KNOWN.iter().map(Category::as_str).collect();
        return Err(refuse(key, value, &format!("one of {}", names.join(", "))));
    }
    Ok(category)
}

/// What can be said without the disk.
fn agrees(change: &Change) -> Result<(), Status> {
    let Some(category) = &change.category else {
        if change.level.is_some()
            && (change.provisioned_iops.is_some() || change.bursting == Some(true))
        {
            return Err(unfit(
                "performanceLevel",
                "is of cloud_essd, provisionedIops and burstingEnabled are of cloud_auto: no disk \
                 has both",
            ));
        }
        return Ok(());
    };
    if change.level.is_some() && !category.has_levels() {
        return Err(unfit(
            "performanceLevel",
            &format!("is of cloud_essd only, and \"type\" is {category}"),
        ));
    }
    if change.provisioned_iops.is_some_and(|iops| iops > 0) && !category.has_burst() {
        return Err(unfit(
            "provisionedIops",
            &format!("is of cloud_auto only, and \"type\" is {category}"),
        ));
    }
    if change.bursting == Some(true) && !category.has_burst() {
        return Err(unfit(
            "burstingEnabled",
            &format!("is of cloud_auto only, and \"type\" is {category}"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PerformanceLevel;

    fn of(pairs: &[(&str, &str)]) -> Result<Change, String> {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        read(&pairs.iter().map(own).collect()).map_err(|status| status.message().to_owned())
    }

    #[test]
    fn every_mutable_parameter_is_read_whatever_its_case() {
        let change = of(&[
            ("Type", "CLOUD_AUTO"),
            ("provisionedIOPS", " 1000 "),
            ("burstingEnabled", "yes"),
            ("diskTags/Team", "blue"),
            ("csi.storage.k8s.io/pvc/name", "data"),
        ])
        .unwrap();
        assert_eq!(change.category, Some(Category::CloudAuto));
        assert_eq!(change.provisioned_iops, Some(1000));
        assert_eq!(change.bursting, Some(true));
        assert_eq!(change.tags["Team"], "blue");
        let level = of(&[("performanceLevel", "pl2")]).unwrap().level;
        assert_eq!(level, Some(PerformanceLevel::Pl2));
        assert!(of(&[]).unwrap().is_empty());
    }

    #[test]
    fn what_is_unknown_bad_or_given_twice_is_refused_by_name_and_value() {
        for (key, value) in [
            ("zoneId", "cn-a"),
            ("type", "cloud_sdd"),
            ("type", "cloud_ssd,cloud_essd"),
            ("performanceLevel", "PL9"),
            ("performanceLevel", "PL1,PL2"),
            ("provisionedIops", "-1"),
            ("provisionedIops", "50001"),
            ("burstingEnabled", "maybe"),
        ] {
            let refused = of(&[(key, value)]).unwrap_err();
            assert!(
                refused.contains(&format!("{key:?}")) && refused.contains(&format!("{value:?}")),
                "{refused}"
            );
        }
        assert!(of(&[("type", "cloud"), ("TYPE", "cloud")]).is_err());
        assert!(of(&[("diskTags/a", "1"), ("disktags/A", "2")]).is_err());
        for key in [
            "diskTags/",
            "diskTags/acs:x",
            "diskTags/diskplugin.csi.example/cluster-id",
        ] {
            assert!(of(&[(key, "1")]).unwrap_err().contains(key), "{key}");
        }
    }

    #[test]
    fn a_level_or_iops_for_a_category_without_is_refused() {
        for pairs in [
            [("type", "cloud_auto"), ("performanceLevel", "PL1")],
            [("type", "cloud_essd"), ("provisionedIops", "100")],
            [("type", "cloud_ssd"), ("burstingEnabled", "true")],
            [("performanceLevel", "PL1"), ("provisionedIops", "100")],
        ] {
            assert!(of(&pairs).unwrap_err().contains("cloud_"), "{pairs:?}");
        }
        assert!(of(&[("type", "cloud_essd"), ("burstingEnabled", "false")]).is_ok());
    }
}
