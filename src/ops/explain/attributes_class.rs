//! A VolumeAttributesClass: what it does to a disk of each category.

use super::manifest::AttributesClass;
use super::parameters;
use super::report::{DiskChange, Explained};
use super::settings::ExplainSettings;
use crate::csi::param::mutable;
use crate::disk::check_change;
use crate::model::{Category, Change, Disk, DiskKind, DiskStatus, Gib, Performance, Tags};

pub(super) fn explain(class: &AttributesClass, settings: &ExplainSettings, mut to: Explained) -> Explained {
    if let Some(why) = settings.other_driver("driverName", &class.driver_name) {
        return to.skip(why);
    }
    let mut map = parameters::strings(class.parameters.as_ref(), &mut to);
    if let Some(change) = parameters::parse_all(&mut map, &mut to, mutable::read) {
        let size = settings.size.gib_ceil().unwrap_or(Gib(u32::MAX));
        let only_tags = Change {
            tags: change.tags.clone(),
            ..Change::default()
        };
        if change != only_tags {
            let categories = Category::CONVERTIBLE.iter();
            to.changes = categories.map(|of| changed(of, size, &change)).collect();
        } else if change.is_empty() && to.problems.is_empty() {
            to.note("the class changes nothing: it has no parameters");
        }
    }
    to
}

/// The driver's own check of a disk that was created without options.
fn changed(category: &Category, size: Gib, change: &Change) -> DiskChange {
    let sizes = category.sizes();
    let size = sizes.map_or(size, |sizes| size.clamp(*sizes.start(), *sizes.end()));
    let disk = Disk {
        category: category.clone(),
        size,
        performance_level: category.has_levels().then(|| "PL1".to_owned()),
        ..disk()
    };
    let checked = check_change(&disk, change);
    let to = change.category.as_ref().unwrap_or(category);
    let becomes = || {
        let level = match change.level {
            None if to.has_levels() => Some("PL1"),
            level => level.map(crate::model::PerformanceLevel::as_str),
        };
        let iops = change.provisioned_iops.unwrap_or_default();
        let name = level.map_or_else(|| to.to_string(), |level| format!("{to} {level}"));
        match Performance::of(to, change.level, iops, size) {
            Some(of) => format!("{name}, {} IOPS, {}", of.read_iops, of.read),
            None => name,
        }
    };
    DiskChange {
        category: category.to_string(),
        size_gib: size.0,
        becomes: checked.is_ok().then(becomes),
        rejection: checked.err().map(|error| {
            // The ID is that of no disk.
            let text = error.to_string();
            text.replacen(&format!("disk {} ", disk.id), "the disk ", 1)
        }),
    }
}

fn disk() -> Disk {
    Disk {
        id: "d-example".parse().expect("the ID is valid"),
        serial: None,
        name: String::new(),
        zone: None,
        category: Category::CloudEssd,
        performance_level: None,
        provisioned_iops: 0,
        bursting: false,
        multi_attach: false,
        delete_with_instance: false,
        resource_group: None,
        size: Gib(0),
        kind: DiskKind::Data,
        status: DiskStatus::Available,
        attachments: Vec::new(),
        source_snapshot: None,
        encrypted: false,
        kms_key: None,
        locks: Vec::new(),
        tags: Tags::new(),
        created: None,
        attached: None,
        detached: None,
    }
}
