//! Requests for disks and snapshots.

use diskplugin::disk::{NewDisk, NewSnapshot, SnapshotPurpose};
use diskplugin::model::{Bytes, Category, DiskId, Gib, SizeRange, SnapshotId, Tags};

use super::zone;

/// At least `required` GiB.
pub(crate) fn gib(required: u32) -> SizeRange {
    SizeRange {
        required: Some(Gib(required).bytes()),
        limit: None,
    }
}

/// At least `required` and at most `limit` GiB.
pub(crate) fn between(required: u32, limit: u32) -> SizeRange {
    SizeRange {
        required: Some(Bytes(Gib(required).bytes().0)),
        limit: Some(Gib(limit).bytes()),
    }
}

/// A blank ESSD of 20 GiB in zone a.
pub(crate) fn new_disk(name: &str) -> NewDisk {
    NewDisk {
        name: name.to_owned(),
        size: gib(20),
        categories: vec![Category::CloudEssd],
        levels: Vec::new(),
        zones: vec![zone("a").into()],
        snapshot: None,
        clone_of: None,
        encrypted: false,
        kms_key: None,
        provisioned_iops: 0,
        bursting: false,
        multi_attach: false,
        resource_group: None,
        tags: Tags::new(),
        deletion_snapshot_days: None,
        created_for: Tags::new(),
    }
}

/// The same with `type: available`: any category in stock.
pub(crate) fn available(name: &str) -> NewDisk {
    NewDisk {
        categories: Category::CREATABLE.to_vec(),
        ..new_disk(name)
    }
}

pub(crate) fn new_snapshot(name: &str, source: &DiskId) -> NewSnapshot {
    NewSnapshot {
        name: name.to_owned(),
        source: source.clone(),
        retention_days: None,
        resource_group: None,
        tags: Tags::new(),
        purpose: SnapshotPurpose::Snapshot,
    }
}

pub(crate) fn sized(name: &str, size: SizeRange) -> NewDisk {
    NewDisk { size, ..new_disk(name) }
}

pub(crate) fn of_category(name: &str, category: Category) -> NewDisk {
    NewDisk {
        categories: vec![category],
        ..new_disk(name)
    }
}

pub(crate) fn in_zone(name: &str, letter: &str) -> NewDisk {
    NewDisk {
        zones: vec![zone(letter).into()],
        ..new_disk(name)
    }
}

/// ESSD if SSD is out of stock, in zone b if both are out of stock in zone a.
pub(crate) fn ssd_or_essd(name: &str) -> NewDisk {
    NewDisk {
        categories: vec![Category::CloudSsd, Category::CloudEssd],
        zones: vec![zone("a").into(), zone("b").into()],
        ..new_disk(name)
    }
}

pub(crate) fn restored(name: &str, snapshot: &SnapshotId) -> NewDisk {
    NewDisk {
        snapshot: Some(snapshot.clone()),
        ..new_disk(name)
    }
}
