//! Snapshot groups of two disks, and their rows in the cloud.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use diskplugin::disk::{DiskServices, GroupSnapshot, NewGroupSnapshot};
use diskplugin::model::{DiskId, SnapshotId, Tags};

use crate::verbs::kit::{Setup, minutes, text};

pub(crate) fn groups(setup: &Setup) -> Vec<Value> {
    setup.cloud.state()["groups"].as_array().unwrap().clone()
}

pub(crate) fn snapshots(setup: &Setup) -> Vec<Value> {
    setup.cloud.state()["snapshots"].as_array().unwrap().clone()
}

pub(crate) fn new_group(name: &str, sources: &[&DiskId]) -> NewGroupSnapshot {
    NewGroupSnapshot {
        name: name.to_owned(),
        sources: sources.iter().map(|id| (*id).clone()).collect(),
        resource_group: None,
        tags: Tags::new(),
    }
}

pub(crate) fn snapshot_ids(group: &GroupSnapshot) -> BTreeSet<SnapshotId> {
    group.snapshots.iter().map(|row| row.id.clone()).collect()
}

pub(crate) async fn two_disks(setup: &Setup) -> (DiskId, DiskId) {
    (setup.disk("pvc-1").await, setup.disk("pvc-2").await)
}

pub(crate) async fn create_group(disks: &Arc<DiskServices>, new: &NewGroupSnapshot) -> GroupSnapshot {
    let created = disks.snapshotter.create_group(minutes(2), new).await;
    created.unwrap_or_else(|error| panic!("create group: {}", text(&error)))
}
