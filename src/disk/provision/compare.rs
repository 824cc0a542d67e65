//! Compares an existing disk with the request (CSI: the same name with other properties is `ALREADY_EXISTS`).

use std::fmt::Display;

use super::{AllowedZone, NewDisk};
use crate::model::{Disk, DiskId, PerformanceLevel, SnapshotId, ZoneId, tag};

pub(super) fn disk(disk: &Disk, new: &NewDisk) -> Option<String> {
    let mut differences = Vec::new();
    let mut check = |what: &str, found: &dyn Display, wanted: &dyn Display, fits: bool| {
        if !fits {
            differences.push(format!("{what} is {found}, wanted {wanted}"));
        }
    };
    let (size, category) = (disk.size, &disk.category);
    check("size", &size, &new.size, new.size.admits(size));
    let wanted = or(&new.categories);
    check("type", category, &wanted, new.categories.contains(category));
    if category.has_levels() {
        // The cloud fills in PL1.
        let default = PerformanceLevel::Pl1.to_string();
        let level = disk.performance_level.as_ref().unwrap_or(&default);
        let wanted = or(&new.levels);
        let wanted = if wanted.is_empty() { &default } else { &wanted };
        let fits = wanted.split(" or ").any(|wanted| wanted == level);
        check("performance level", &level, &wanted, fits);
    }
    if category.has_burst() {
        let (iops, wanted) = (disk.provisioned_iops, new.provisioned_iops);
        check("provisionedIops", &iops, &wanted, iops == wanted);
        let (bursting, wanted) = (disk.bursting, new.bursting);
        check("bursting", &bursting, &wanted, bursting == wanted);
    }
    let cloned = disk.tags.get(tag::CLONE_OF).map_or("none", String::as_str);
    let wanted = new.clone_of.as_ref().map_or("none", DiskId::as_str);
    check("source volume", &cloned, &wanted, cloned == wanted);
    // The temporary snapshot of a clone is not part of the request.
    if !disk.tags.contains_key(tag::CLONE_OF) {
        let source = disk.source_snapshot.as_ref();
        let source = source.map_or("none", SnapshotId::as_str);
        let wanted = new.snapshot.as_ref().map_or("none", SnapshotId::as_str);
        check("source snapshot", &source, &wanted, source == wanted);
    }
    // An account can encrypt disks by default.
    let fits = disk.encrypted || !new.encrypted;
    check("encrypted", &disk.encrypted, &new.encrypted, fits);
    if let Some(wanted) = &new.kms_key {
        let key = disk.kms_key.as_deref().unwrap_or("none");
        check("KMS key", &key, wanted, disk.kms_key == new.kms_key);
    }
    let (shared, wanted) = (disk.multi_attach, new.multi_attach);
    check("multiAttach", &shared, &wanted, shared == wanted);
    // Without a requested resource group, the disk has the account's default.
    if let Some(wanted) = &new.resource_group {
        let group = disk.resource_group.as_deref().unwrap_or("none");
        let fits = disk.resource_group == new.resource_group;
        check("resource group", &group, wanted, fits);
    }
    for (key, wanted) in &new.requested_tags() {
        let value = disk.tags.get(key);
        let found = value.map_or("none".to_owned(), |value| format!("{value:?}"));
        let fits = value == Some(wanted);
        check(&format!("tag {key}"), &found, &format!("{wanted:?}"), fits);
    }
    differences.extend(zone_difference(disk, new));
    (!differences.is_empty()).then(|| differences.join("; "))
}

fn or(items: impl IntoIterator<Item = impl Display>) -> String {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(" or ")
}

/// The difference in zone, or in the categories that its nodes support. A regional disk can be used in every zone.
fn zone_difference(disk: &Disk, new: &NewDisk) -> Option<String> {
    let is_regional = disk.category.is_regional();
    let here = |place: &&AllowedZone| is_regional || disk.zone.as_ref() == Some(&place.zone);
    let mut here = new.zones.iter().filter(here).peekable();
    let zone = disk.zone.as_ref().map(ZoneId::as_str);
    if here.peek().is_none() {
        let zone = zone.unwrap_or("none");
        let wanted = or(new.zones.iter().map(|place| &place.zone));
        return (!is_regional).then(|| format!("zone is {zone}, wanted {wanted}"));
    }
    let is_admitted = here.any(|place| place.supports(&disk.category));
    (!is_admitted).then(|| {
        let wanted: Vec<_> = new.zones.iter().map(ToString::to_string).collect();
        let (zone, wanted) = (zone.unwrap_or("the region"), wanted.join(" or "));
        format!(
            "type is {} in {zone}, which the nodes do not support, wanted {wanted}",
            disk.category
        )
    })
}
