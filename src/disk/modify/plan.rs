//! The request for a change, and the changes that the cloud's documentation excludes.

use std::fmt::Display;

use ecs::ModifyDiskSpec;

use crate::disk::Result;
use crate::disk::error::rejected;
use crate::model::{Category, Change, Disk, Failure, PerformanceLevel};

/// The request for the change; `None` if the disk already matches.
pub(super) fn modify_spec(row: &Disk, change: &Change) -> Option<ModifyDiskSpec> {
    let spec = ModifyDiskSpec {
        disk: row.id.clone(),
        category: change.category.clone().filter(|to| *to != row.category),
        performance_level: change.level.filter(|to| level(row) != Some(*to)),
        // Disks of other categories report 0.
        provisioned_iops: change.provisioned_iops.filter(|to| *to != row.provisioned_iops),
        dry_run: false,
    };
    let is_empty = spec.category.is_none() && spec.performance_level.is_none() && spec.provisioned_iops.is_none();
    (!is_empty).then_some(spec)
}

fn level(row: &Disk) -> Option<PerformanceLevel> {
    row.performance_level.as_deref()?.parse().ok()
}

/// Rejects a change that the cloud's documentation excludes for this disk.
pub fn check_change(row: &Disk, change: &Change) -> Result<()> {
    let reject = |wanted: &dyn Display, reason: String| {
        let text = format!("disk {} cannot become {wanted}: {reason}", row.id);
        Err(rejected(Failure::ModifyRejected, text, None))
    };
    let to = change.category.as_ref().unwrap_or(&row.category);
    let (from, size) = (&row.category, row.size);
    if to != from {
        if ![from, to].iter().all(|one| Category::CONVERTIBLE.contains(one)) {
            let names = Category::CONVERTIBLE.each_ref().map(Category::as_str).join(", ");
            let reason = format!("it is {from}, and only these change into one another: {names}");
            return reject(to, reason);
        }
        if let Some(sizes) = to.sizes_at(change.level).filter(|sizes| !sizes.contains(&size)) {
            let (least, most) = sizes.into_inner();
            return reject(to, format!("its size is {size}, allowed are {least} to {most}"));
        }
    }
    if let Some(wanted) = change.level {
        if !to.has_levels() {
            return reject(&wanted, format!("{to} has no performance levels"));
        }
        if !wanted.sizes().contains(&size) {
            let least = wanted.sizes().start().to_string();
            let reason = format!("its size is {size}, the minimum is {least}; expand it first");
            return reject(&wanted, reason);
        }
        if wanted == PerformanceLevel::Pl0 && level(row) != Some(wanted) {
            return reject(&wanted, "no disk can be downgraded to it".to_owned());
        }
    }
    let most = to.most_provisioned_iops(size);
    if let Some(wanted) = change.provisioned_iops.filter(|wanted| *wanted > most) {
        let reason = format!("the maximum for {to} of {size} is {most}");
        return reject(&format!("a disk of {wanted} provisioned IOPS"), reason);
    }
    if change.bursting == Some(true) && !to.may_burst(size) {
        let reason = format!("{to} of {size} does not support it: cloud_auto above 3 GiB does");
        return reject(&"a bursting disk", reason);
    }
    let is_changed = modify_spec(row, change).is_some() || change.bursting == Some(true);
    if row.multi_attach && is_changed {
        let reason = "the cloud does not change disks that several instances can hold";
        return reject(&"another", reason.to_owned());
    }
    Ok(())
}
