//! Disks, snapshots and volumes of tests.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::classify::Rules;
use super::observe::Observed;
use crate::cluster::volumes::{Content, ContentKind, Volume, Volumes};
use crate::model::{Category, Disk, DiskKind, DiskStatus, Gib, Snapshot, SnapshotStatus, Tags, tag};

pub(super) const HOUR: Duration = Duration::from_secs(3600);

pub(super) const SNAPSHOT_UID: &str = "0d1c6f0e-9a67-4c79-8f0a-0a4e1f2b3c4d";

pub(super) fn now() -> Timestamp {
    "2026-05-01T12:00:00Z".parse().unwrap()
}

pub(super) fn ago(age: Duration) -> Option<Timestamp> {
    Some(now() - age)
}

pub(super) fn disk(id: &str) -> Disk {
    Disk {
        id: id.parse().unwrap(),
        serial: None,
        name: "pvc-1".to_owned(),
        zone: "cn-beijing-b".parse().ok(),
        category: Category::CloudEssd,
        performance_level: Some("PL1".to_owned()),
        provisioned_iops: 0,
        bursting: false,
        multi_attach: false,
        delete_with_instance: false,
        resource_group: None,
        size: Gib(20),
        kind: DiskKind::Data,
        status: DiskStatus::Available,
        attachments: Vec::new(),
        source_snapshot: None,
        encrypted: false,
        kms_key: None,
        locks: Vec::new(),
        tags: Tags::from([
            (tag::CLUSTER.to_owned(), "c-test".to_owned()),
            ("kubernetes.io/created-for/pv/name".to_owned(), "pvc-1".to_owned()),
            ("kubernetes.io/created-for/pvc/name".to_owned(), "data".to_owned()),
            ("kubernetes.io/created-for/pvc/namespace".to_owned(), "team".to_owned()),
        ]),
        created: ago(2 * HOUR),
        attached: None,
        detached: None,
    }
}

pub(super) fn snapshot(id: &str) -> Snapshot {
    Snapshot {
        id: id.parse().unwrap(),
        name: "snapshot-1".to_owned(),
        source_disk: None,
        source_size: Gib(20),
        status: SnapshotStatus::Accomplished,
        created: ago(2 * HOUR),
        available: true,
        encrypted: false,
        group: None,
        tags: Tags::from([(tag::CLUSTER.to_owned(), "c-test".to_owned())]),
    }
}

pub(super) fn volume(name: &str, handle: &str) -> Volume {
    Volume {
        name: name.to_owned(),
        handle: handle.to_owned(),
        phase: "Bound".to_owned(),
        is_retained: false,
        claim: Some("team/data".to_owned()),
    }
}

pub(super) fn content(name: &str, handle: Option<&str>) -> Content {
    Content {
        kind: ContentKind::Snapshot,
        name: name.to_owned(),
        handle: handle.map(str::to_owned),
        snapshot: None,
        snapshot_uid: Some(SNAPSHOT_UID.to_owned()),
        used: Vec::new(),
    }
}

/// d-used is the disk of a PersistentVolume, before and after.
pub(super) fn observed() -> Observed {
    let volumes = Volumes {
        volumes: vec![volume("used", "d-used")],
        ..Volumes::default()
    };
    Observed {
        at: now(),
        before: volumes.clone(),
        after: volumes,
        disks: vec![disk("d-used")],
        snapshots: Vec::new(),
        any_snapshot_visible: true,
        others: BTreeMap::new(),
    }
}

pub(super) fn rules() -> Rules {
    Rules {
        cluster: "c-test".parse().unwrap(),
        min_age: HOUR,
        allow_unreferenced: false,
    }
}
