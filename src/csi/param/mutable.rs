//! Mutable parameters, from a VolumeAttributesClass. In CreateVolume they override the StorageClass;
//! ControllerModifyVolume applies them to an existing disk.

use super::storage_class::TAGS;
use super::template;
use super::value::{Map, Result, boolean, check_categories, entries, iops, names, parse};
use crate::csi::request::error::Error;
use crate::model::{Category, Change};

const ENTRY: &str = "mutable parameter";
const ALLOWED: &str = "type, performanceLevel, provisionedIops, burstingEnabled and diskTags/<key>";

/// Parses mutable parameters. Names are case-insensitive; those of the sidecars (`csi.storage.k8s.io/*`) are ignored.
pub fn read(parameters: &Map) -> Result<Change> {
    let (entries, mut tags) = entries(ENTRY, parameters, TAGS)?;
    template::expand(template::single(ENTRY), &mut tags, None)?;
    let mut change = Change {
        tags,
        ..Change::default()
    };
    for entry in entries {
        let (field, value) = (&*entry.field, entry.value);
        match &*entry.name {
            "type" => change.category = Some(category(field, value)?),
            "performancelevel" => change.level = Some(parse(field, value, "PL0, PL1, PL2, PL3")?),
            "provisionediops" => change.provisioned_iops = Some(iops(field, value)?),
            "burstingenabled" => change.bursting = Some(boolean(field, value)?),
            _ => return Err(Error::unknown_key(field, value, ALLOWED)),
        }
    }
    check_compatibility(&change)?;
    Ok(change)
}

/// As [`read`], for an existing volume: with the names of claim and volume in its tags.
pub fn read_change(parameters: &Map) -> Result<Change> {
    let mut change = read(parameters)?;
    let from = Some((parameters, "csi-resizer with --extra-modify-metadata"));
    template::expand(template::single(ENTRY), &mut change.tags, from)?;
    Ok(change)
}

fn category(field: &str, value: &str) -> Result<Category> {
    let Ok(category): Result<Category, _> = value.to_ascii_lowercase().parse();
    if !Category::KNOWN.contains(&category) {
        let allowed = format!("one of {}", names(Category::KNOWN));
        return Err(Error::value(field, value, allowed));
    }
    Ok(category)
}

fn check_compatibility(change: &Change) -> Result<()> {
    let level = change.level.is_some();
    let bursting = change.bursting == Some(true);
    if let Some(category) = &change.category {
        let iops = change.provisioned_iops.is_some_and(|iops| iops > 0);
        let categories = std::slice::from_ref(category);
        return check_categories(ENTRY, categories, level, iops, bursting);
    }
    if level && (change.provisioned_iops.is_some() || bursting) {
        return Err(Error::unsupported(
            format!("{ENTRY} \"performanceLevel\""),
            "requires cloud_essd, but provisionedIops and burstingEnabled require cloud_auto",
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
        read(&pairs.iter().map(own).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn mutable_parameters_are_case_insensitive() {
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
    fn unknown_invalid_and_duplicate_parameters_are_rejected_by_name_and_value() {
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
    fn parameters_of_another_category_are_rejected() {
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
