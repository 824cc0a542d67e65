//! Whether the existing snapshot or group is the requested one (CSI: the same name with other properties is
//! `ALREADY_EXISTS`).

use std::collections::BTreeSet;

use crate::model::{DiskId, Snapshot, SnapshotGroup};

/// What differs between the group and the disks that it is wanted of; none when it will do.
pub(super) fn group(group: &SnapshotGroup, sources: &BTreeSet<DiskId>) -> Option<String> {
    let members = group.members.iter();
    let found: BTreeSet<&DiskId> = members.filter_map(|row| row.source.as_ref()).collect();
    let wanted: BTreeSet<&DiskId> = sources.iter().collect();
    let names = |ids: &mut dyn Iterator<Item = &&DiskId>| {
        let ids: Vec<_> = ids.map(|id| id.as_str()).collect();
        ids.join(", ")
    };
    let mut differences = Vec::new();
    let extra = names(&mut found.difference(&wanted));
    if !extra.is_empty() {
        differences.push(format!("it has volumes {extra}, which are not wanted"));
    }
    let lacks = names(&mut wanted.difference(&found));
    if !lacks.is_empty() {
        differences.push(format!("it lacks volumes {lacks}"));
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
