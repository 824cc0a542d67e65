//! A VolumeAttributesClass: what it does to a disk of each category.

use serde_json::json;

use super::manifest::Class;
use super::parameters;
use super::report::{DiskChange, Explained};
use super::settings::ExplainSettings;
use crate::csi::param::mutable;
use crate::disk::check_change;
use crate::model::{Category, Change, Disk, Gib, Performance, PerformanceLevel};

pub(super) fn explain(class: &Class, settings: &ExplainSettings, to: &mut Explained) {
    let mut map = parameters::strings(class, to);
    let Some(change) = parameters::parse_all(&mut map, to, mutable::read) else {
        return;
    };
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

/// The driver's own check of a disk that was created without options.
fn changed(category: &Category, size: Gib, change: &Change) -> DiskChange {
    let sizes = category.sizes();
    let size = sizes.map_or(size, |sizes| size.clamp(*sizes.start(), *sizes.end()));
    let level = category.has_levels().then_some("PL1");
    let row = json!({
        "DiskId": "d-example", "Category": category.as_str(), "PerformanceLevel": level, "Size": size.0,
        "Status": "Available",
    });
    let disk: Disk = serde_json::from_value(row).expect("the row has all required fields");
    let checked = check_change(&disk, change);
    let to = change.category.as_ref().unwrap_or(category);
    let becomes = || {
        let level = change.level.or(to.has_levels().then_some(PerformanceLevel::Pl1));
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
