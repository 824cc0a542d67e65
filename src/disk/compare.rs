//! Whether what exists is what is asked for (CSI: same name with other properties is
//! `ALREADY_EXISTS`).

use super::NewDisk;
use crate::model::{Disk, DiskId, Snapshot, SnapshotId, ZoneId};

/// What differs between the disk and the request, both sides; none when the disk will do.
pub(super) fn disk(disk: &Disk, new: &NewDisk) -> Option<String> {
    let mut differences = Vec::new();
    if !new.size.admits(disk.size) {
        differences.push(format!("size is {}, wanted {}", disk.size, new.size));
    }
    if !new.categories.contains(&disk.category) {
        let wanted: Vec<_> = new.categories.iter().map(ToString::to_string).collect();
        differences.push(format!(
            "type is {}, wanted {}",
            disk.category,
            wanted.join(" or ")
        ));
    }
    if !disk
        .zone
        .as_ref()
        .is_some_and(|zone| new.zones.contains(zone))
    {
        let wanted: Vec<_> = new.zones.iter().map(ZoneId::as_str).collect();
        let zone = disk.zone.as_ref().map_or("none", ZoneId::as_str);
        differences.push(format!("zone is {zone}, wanted {}", wanted.join(" or ")));
    }
    if disk.source_snapshot != new.snapshot {
        let text = |id: Option<&SnapshotId>| id.map_or("none", SnapshotId::as_str).to_owned();
        differences.push(format!(
            "source snapshot is {}, wanted {}",
            text(disk.source_snapshot.as_ref()),
            text(new.snapshot.as_ref())
        ));
    }
    // A disk of an account that encrypts by default is encrypted without having been asked.
    if new.encrypted && !disk.encrypted {
        differences.push("it is not encrypted, wanted encrypted".to_owned());
    }
    if new.kms_key.is_some() && disk.kms_key != new.kms_key {
        differences.push("it is encrypted by another key".to_owned());
    }
    (!differences.is_empty()).then(|| differences.join("; "))
}

/// What differs between the snapshot and the request; none when it will do.
pub(super) fn snapshot(snapshot: &Snapshot, source: &DiskId) -> Option<String> {
    (snapshot.source_disk.as_ref() != Some(source)).then(|| {
        let found = snapshot
            .source_disk
            .as_ref()
            .map_or("unknown", DiskId::as_str);
        format!("source volume is {found}, wanted {source}")
    })
}
