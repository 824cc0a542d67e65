//! What has to be ordered for a change, and which changes the cloud's documentation excludes.

use crate::cloud::ModifyDiskSpec;
use crate::disk::{Error, Result};
use crate::model::{Category, Change, Disk, PerformanceLevel};

/// The order for the change; none if the disk is like this already.
pub(super) fn order(row: &Disk, change: &Change) -> Option<ModifyDiskSpec> {
    let order = ModifyDiskSpec {
        disk: row.id.clone(),
        category: change.category.clone().filter(|to| *to != row.category),
        performance_level: change.level.filter(|to| level(row) != Some(*to)),
        // Disks of other categories report 0.
        provisioned_iops: change
            .provisioned_iops
            .filter(|to| *to != row.provisioned_iops),
        dry_run: false,
    };
    let nothing = order.category.is_none()
        && order.performance_level.is_none()
        && order.provisioned_iops.is_none();
    (!nothing).then_some(order)
}

/// Whether the row shows what was ordered.
pub(super) fn shows(row: &Disk, order: &ModifyDiskSpec) -> bool {
    order.category.as_ref().is_none_or(|to| row.category == *to)
        && order
            .performance_level
            .is_none_or(|to| level(row) == Some(to))
        && order
            .provisioned_iops
            .is_none_or(|to| row.provisioned_iops == to)
}

fn level(row: &Disk) -> Option<PerformanceLevel> {
    row.performance_level.as_deref()?.parse().ok()
}

/// Refuses a change that the cloud's documentation excludes for such a disk.
pub(super) fn check(row: &Disk, change: &Change) -> Result<()> {
    let refuse = |wanted: String, reason: String| {
        Err(Error::CannotBecome {
            disk: row.id.clone(),
            wanted,
            reason,
        })
    };
    let to = change.category.as_ref().unwrap_or(&row.category);
    let (from, size) = (&row.category, row.size);
    if to != from {
        let names = Category::CONVERTIBLE.each_ref().map(Category::as_str);
        let names = names.join(", ");
        if !Category::CONVERTIBLE.contains(to) || !Category::CONVERTIBLE.contains(from) {
            let reason = format!("it is {from}, and only these change into one another: {names}");
            return refuse(to.to_string(), reason);
        }
        let sizes = to.sizes_at(change.level);
        if let Some(sizes) = sizes.filter(|sizes| !sizes.contains(&size)) {
            let reason = format!(
                "its size is {size}, allowed are {} to {}",
                sizes.start(),
                sizes.end()
            );
            return refuse(to.to_string(), reason);
        }
    }
    if let Some(wanted) = change.level {
        if !to.has_levels() {
            return refuse(
                wanted.to_string(),
                format!("{to} has no performance levels"),
            );
        }
        if !wanted.sizes().contains(&size) {
            let least = wanted.sizes().start().to_string();
            let reason = format!("its size is {size}, the minimum is {least}; expand it first");
            return refuse(wanted.to_string(), reason);
        }
        if wanted == PerformanceLevel::Pl0 && level(row) != Some(wanted) {
            return refuse(
                wanted.to_string(),
                "no disk can be downgraded to it".to_owned(),
            );
        }
    }
    let most = to.most_provisioned_iops(size);
    if let Some(wanted) = change.provisioned_iops.filter(|wanted| *wanted > most) {
        let reason = format!("the maximum for {to} of {size} is {most}");
        return refuse(format!("a disk of {wanted} provisioned IOPS"), reason);
    }
    if change.bursting == Some(true) && !to.may_burst(size) {
        let reason = format!("{to} of {size} does not support it: cloud_auto above 3 GiB does");
        return refuse("a bursting disk".to_owned(), reason);
    }
    let ordered = order(row, change).is_some() || change.bursting == Some(true);
    if row.multi_attach && ordered {
        let reason = "the cloud does not change disks that several instances can hold";
        return refuse("another".to_owned(), reason.to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DiskKind, DiskStatus, Gib, Tags};

    fn disk(category: Category, size: u32) -> Disk {
        Disk {
            id: "d-1".parse().unwrap(),
            serial: None,
            name: String::new(),
            zone: None,
            performance_level: category.has_levels().then(|| "PL1".to_owned()),
            category,
            provisioned_iops: 0,
            bursting: false,
            multi_attach: false,
            resource_group: None,
            size: Gib(size),
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

    #[test]
    fn what_the_disk_is_already_is_not_ordered() {
        let row = disk(Category::CloudEssd, 20);
        let change = Change {
            category: Some(Category::CloudEssd),
            level: Some(PerformanceLevel::Pl1),
            provisioned_iops: Some(0),
            ..Change::default()
        };
        assert_eq!(order(&row, &change), None);
        let change = Change {
            level: None,
            category: Some(Category::CloudAuto),
            provisioned_iops: Some(100),
            ..change
        };
        let order = order(&row, &change).unwrap();
        assert_eq!(order.category, Some(Category::CloudAuto));
        assert_eq!(
            (order.performance_level, order.provisioned_iops),
            (None, Some(100))
        );
        assert!(!shows(&row, &order));
    }

    #[test]
    fn what_no_such_disk_can_be_is_refused_with_the_bound() {
        let level = |level| Change {
            level: Some(level),
            ..Change::default()
        };
        let iops = |iops| Change {
            provisioned_iops: Some(iops),
            ..Change::default()
        };
        let category = |category| Change {
            category: Some(category),
            ..Change::default()
        };
        let bursting = Change {
            bursting: Some(true),
            ..Change::default()
        };
        let shared = Disk {
            multi_attach: true,
            ..disk(Category::CloudEssd, 500)
        };
        for (row, change, expected) in [
            (
                disk(Category::CloudEssd, 20),
                level(PerformanceLevel::Pl3),
                "1261 GiB",
            ),
            (
                disk(Category::CloudEssd, 20),
                level(PerformanceLevel::Pl0),
                "downgraded",
            ),
            (
                disk(Category::CloudSsd, 20),
                level(PerformanceLevel::Pl1),
                "no performance levels",
            ),
            (disk(Category::CloudAuto, 20), iops(17_001), "is 17000"),
            (disk(Category::CloudSsd, 20), iops(1), "is 0"),
            (
                disk(Category::Cloud, 20),
                category(Category::CloudSsd),
                "cloud_essd, cloud_auto",
            ),
            (
                disk(Category::CloudAuto, 5),
                category(Category::CloudSsd),
                "20 GiB to 32768 GiB",
            ),
            (disk(Category::CloudAuto, 3), bursting, "above 3 GiB"),
            (shared, level(PerformanceLevel::Pl2), "several instances"),
        ] {
            let refused = check(&row, &change).unwrap_err().to_string();
            assert!(
                refused.contains(expected) && refused.contains("d-1"),
                "{refused}"
            );
        }
        assert!(check(&disk(Category::CloudAuto, 20), &iops(17_000)).is_ok());
        assert!(
            check(
                &disk(Category::CloudEssd, 461),
                &level(PerformanceLevel::Pl2)
            )
            .is_ok()
        );
    }
}
