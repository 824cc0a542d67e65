//! Disks, snapshots and volumes of tests.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::classify::Rules;
use super::observe::{Current, Observed, Presence};
use crate::cluster::volumes::{Content, ContentKind, Volume, Volumes};
use crate::model::{Disk, Snapshot, Tags, tag};

mod classify;
mod delete;

const HOUR: Duration = Duration::from_secs(3600);

const SNAPSHOT_UID: &str = "0d1c6f0e-9a67-4c79-8f0a-0a4e1f2b3c4d";

fn now() -> Timestamp {
    "2026-05-01T12:00:00Z".parse().unwrap()
}

fn ago(age: Duration) -> Option<Timestamp> {
    Some(now() - age)
}

fn disk(id: &str) -> Disk {
    let row = json!({
        "DiskId": id, "DiskName": "pvc-1", "ZoneId": "cn-beijing-b", "Category": "cloud_essd",
        "PerformanceLevel": "PL1", "Size": 20, "Status": "Available",
    });
    Disk {
        tags: Tags::from([
            (tag::CLUSTER.to_owned(), "c-test".to_owned()),
            ("kubernetes.io/created-for/pv/name".to_owned(), "pvc-1".to_owned()),
            ("kubernetes.io/created-for/pvc/name".to_owned(), "data".to_owned()),
            ("kubernetes.io/created-for/pvc/namespace".to_owned(), "team".to_owned()),
        ]),
        created: ago(2 * HOUR),
        ..serde_json::from_value(row).unwrap()
    }
}

fn snapshot(id: &str) -> Snapshot {
    let row = json!({
        "SnapshotId": id, "SnapshotName": "snapshot-1", "SourceDiskSize": 20, "Status": "accomplished",
        "Available": true,
    });
    Snapshot {
        created: ago(2 * HOUR),
        tags: Tags::from([(tag::CLUSTER.to_owned(), "c-test".to_owned())]),
        ..serde_json::from_value(row).unwrap()
    }
}

/// The current state of a disk, without the tag of this cluster unless it is owned.
fn current(disk: Disk, is_owned: bool) -> Current {
    Current {
        tags: if is_owned { disk.tags.clone() } else { Tags::new() },
        group: None,
        created: disk.created,
        is_owned,
        row: Some(Box::new(disk)),
    }
}

fn foreign(disk: Disk) -> Presence {
    Presence::Found(current(disk, false))
}

fn volume(name: &str, handle: &str) -> Volume {
    Volume {
        name: name.to_owned(),
        handle: handle.to_owned(),
        phase: "Bound".to_owned(),
        is_retained: false,
        claim: Some("team/data".to_owned()),
    }
}

fn content(name: &str, handle: Option<&str>) -> Content {
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
fn observed() -> Observed {
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

fn rules() -> Rules {
    Rules {
        cluster: "c-test".parse().unwrap(),
        min_age: HOUR,
        allow_unreferenced: false,
    }
}
