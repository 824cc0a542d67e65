//! Whether what exists is what is asked for (CSI: same name with other properties is
//! `ALREADY_EXISTS`).

use super::{NewDisk, Place};
use crate::model::{Category, Disk, DiskId, PerformanceLevel, SnapshotId, ZoneId, tag};

/// What differs between the disk and the request, both sides; none when the disk will do.
pub(super) fn disk(disk: &Disk, new: &NewDisk) -> Option<String> {
    let mut differences = Vec::new();
    if !new.size.admits(disk.size) {
        differences.push(format!("size is {}, wanted {}", disk.size, new.size));
    }
    if !new.categories.contains(&disk.category) {
        let wanted: Vec<_> = new.categories.iter().map(Category::as_str).collect();
        differences.push(format!(
            "type is {}, wanted {}",
            disk.category,
            wanted.join(" or ")
        ));
    }
    differences.extend(performance(disk, new));
    differences.extend(place(disk, new));
    let text = |id: Option<&str>| id.unwrap_or("none").to_owned();
    let cloned = disk.tags.get(tag::CLONE_OF).map(String::as_str);
    let wanted = new.clone_of.as_ref().map(DiskId::as_str);
    if cloned != wanted {
        differences.push(format!(
            "source volume is {}, wanted {}",
            text(cloned),
            text(wanted)
        ));
    }
    // The snapshot of a clone is nobody's business.
    if cloned.is_none() && disk.source_snapshot != new.snapshot {
        differences.push(format!(
            "source snapshot is {}, wanted {}",
            text(disk.source_snapshot.as_ref().map(SnapshotId::as_str)),
            text(new.snapshot.as_ref().map(SnapshotId::as_str))
        ));
    }
    // A disk of an account that encrypts by default is encrypted without having been asked.
    if new.encrypted && !disk.encrypted {
        differences.push("it is not encrypted, wanted encrypted".to_owned());
    }
    if new.kms_key.is_some() && disk.kms_key != new.kms_key {
        differences.push("it is encrypted by another key".to_owned());
    }
    if disk.multi_attach != new.multi_attach {
        let text = |shared| if shared { "enabled" } else { "disabled" };
        differences.push(format!(
            "multiAttach is {}, wanted {}",
            text(disk.multi_attach),
            text(new.multi_attach)
        ));
    }
    // One that was not asked for has the account's default group.
    if new.resource_group.is_some() && disk.resource_group != new.resource_group {
        let text = |group: &Option<String>| group.clone().unwrap_or_else(|| "none".to_owned());
        differences.push(format!(
            "resource group is {}, wanted {}",
            text(&disk.resource_group),
            text(&new.resource_group)
        ));
    }
    for (key, wanted) in &new.tags {
        match disk.tags.get(key) {
            Some(value) if value == wanted => {}
            Some(value) => differences.push(format!("tag {key} is {value:?}, wanted {wanted:?}")),
            None => differences.push(format!("tag {key} is missing, wanted {wanted:?}")),
        }
    }
    (!differences.is_empty()).then(|| differences.join("; "))
}

/// What was bought of levels and IOPS. The cloud fills in PL1, and neither IOPS nor bursting.
fn performance(disk: &Disk, new: &NewDisk) -> Vec<String> {
    let mut differences = Vec::new();
    if disk.category.has_levels() {
        let default = PerformanceLevel::Pl1;
        let found = disk
            .performance_level
            .as_deref()
            .unwrap_or(default.as_str());
        let wanted = match new.levels.as_slice() {
            [] => &[default],
            levels => levels,
        };
        if !wanted.iter().any(|level| level.as_str() == found) {
            let wanted: Vec<_> = wanted.iter().map(|level| level.as_str()).collect();
            differences.push(format!(
                "performance level is {found}, wanted {}",
                wanted.join(" or ")
            ));
        }
    }
    if disk.category.has_burst() {
        if disk.provisioned_iops != new.provisioned_iops {
            differences.push(format!(
                "provisioned IOPS are {}, wanted {}",
                disk.provisioned_iops, new.provisioned_iops
            ));
        }
        if disk.bursting != new.bursting {
            differences.push(format!(
                "bursting is {}, wanted {}",
                disk.bursting, new.bursting
            ));
        }
    }
    differences
}

/// Whether it can be used where it must be. A regional disk can be used in every zone.
fn place(disk: &Disk, new: &NewDisk) -> Option<String> {
    let here = |place: &&Place| {
        disk.category.is_regional() || disk.zone.as_ref().is_some_and(|zone| *zone == place.zone)
    };
    let mut places = new.places.iter().filter(here).peekable();
    if places.peek().is_none() {
        if disk.category.is_regional() {
            return None;
        }
        let wanted: Vec<_> = new.places.iter().map(|place| place.zone.as_str()).collect();
        let zone = disk.zone.as_ref().map_or("none", ZoneId::as_str);
        return Some(format!("zone is {zone}, wanted {}", wanted.join(" or ")));
    }
    let wanted: Vec<_> = new.places.iter().map(ToString::to_string).collect();
    (!places.any(|place| place.admits(&disk.category))).then(|| {
        format!(
            "it is of {} in {}, wanted where the nodes take it: {}",
            disk.category,
            disk.zone.as_ref().map_or("the region", ZoneId::as_str),
            wanted.join(" or ")
        )
    })
}
