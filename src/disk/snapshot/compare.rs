//! Compares an existing snapshot or group with the request (CSI: the same name with other properties is
//! `ALREADY_EXISTS`).

use std::collections::BTreeSet;

use crate::model::{DiskId, Snapshot, SnapshotGroup};

/// The differences between the group and the requested disks; `None` if the group satisfies the request.
pub(super) fn group(group: &SnapshotGroup, sources: &BTreeSet<DiskId>) -> Option<String> {
    let members = group.members.iter();
    let found: BTreeSet<DiskId> = members.filter_map(|row| row.source.clone()).collect();
    let extra = (found.difference(sources)).map(|id| format!("volume {id} is not requested"));
    let missing = (sources.difference(&found)).map(|id| format!("volume {id} is missing"));
    let differences: Vec<_> = extra.chain(missing).collect();
    (!differences.is_empty()).then(|| differences.join("; "))
}

/// The difference between the snapshot and the request; `None` if the snapshot satisfies it.
pub(super) fn snapshot(snapshot: &Snapshot, source: &DiskId) -> Option<String> {
    let found = snapshot.source_disk.as_ref();
    (found != Some(source)).then(|| {
        let found = found.map_or("unknown", DiskId::as_str);
        format!("source volume is {found}, wanted {source}")
    })
}
