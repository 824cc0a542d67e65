//! Whether the existing snapshot or group is the requested one (CSI: the same name with other properties is
//! `ALREADY_EXISTS`).

use std::collections::BTreeSet;

use crate::model::{DiskId, Snapshot, SnapshotGroup};

/// What differs between the group and the disks that it is wanted of; none when it will do.
pub(super) fn group(group: &SnapshotGroup, sources: &BTreeSet<DiskId>) -> Option<String> {
    let members = group.members.iter();
    let found: BTreeSet<DiskId> = members.filter_map(|row| row.source.clone()).collect();
    let extra = (found.difference(sources)).map(|id| format!("volume {id} is not requested"));
    let lacks = (sources.difference(&found)).map(|id| format!("volume {id} is missing"));
    let differences: Vec<_> = extra.chain(lacks).collect();
    (!differences.is_empty()).then(|| differences.join("; "))
}

/// What differs between the snapshot and the request; none when it will do.
pub(super) fn snapshot(snapshot: &Snapshot, source: &DiskId) -> Option<String> {
    let found = snapshot.source_disk.as_ref();
    (found != Some(source)).then(|| {
        let found = found.map_or("unknown", DiskId::as_str);
        format!("source volume is {found}, wanted {source}")
    })
}
