//! The fixture of the tests: the fake cloud and the disk services on top of it, with shortcuts for common operations.

pub(crate) mod altered;
mod assert;
mod calls;
mod create;
mod external;
mod group;
mod modify;
mod overlay;
mod publish;
mod request;
mod setup;

// The imports of every test.
pub(crate) use std::collections::{BTreeMap, BTreeSet};
pub(crate) use std::sync::Arc;
pub(crate) use std::time::Duration;

pub(crate) use serde_json::{Value, json};
pub(crate) use tokio::task::JoinSet;
pub(crate) use tokio::time::{Instant, timeout};

pub(crate) use diskplugin::base::Deadline;
pub(crate) use diskplugin::disk::{
    DiskServices, Error, FailureKind, GroupSnapshot, NewDisk, NewGroupSnapshot, NewSnapshot, NodeAccess, PublishRequest,
};
pub(crate) use diskplugin::model::{
    Category, Change, Disk, DiskId, Failure, InstanceId, PerformanceLevel, SizeRange, Snapshot, SnapshotGroupId,
    SnapshotId, Tags, tag,
};

use diskplugin::base::Tasks;
use diskplugin::model::ZoneId;
use ecs::Client;
use fake_ecs::{Cloud, ExistingDisk};

use crate::common::ecs::essd;
pub(crate) use crate::common::ecs::{attach_to, detach_from, snapshot_of};
use crate::common::memory_cloud;
pub(crate) use crate::common::memory_cloud::client;
pub(crate) use crate::common::rng::Rng;
pub(crate) use assert::{
    assert_error, assert_failure, assert_names, assert_not_final, assert_unavailable, expect, text,
};
pub(crate) use create::{create_until_row, is_final, retry, sleep, with_retries};
pub(crate) use group::{assert_groups, first_group, group_of_two, new_group, snapshot_ids, two_disks};
pub(crate) use modify::{category_change, changed_properties, disk_of, full_change, modify, properties, tags, writes};
pub(crate) use overlay::Overlay;
pub(crate) use publish::single_node;
pub(crate) use request::{
    available, between, gib, in_zone, new_disk, new_snapshot, of_category, restored, sized, ssd_or_essd,
};
pub(crate) use setup::{Setup, disk_services, established};

/// Maximum delay between the end of an operation that takes whole seconds and the poll that observes it.
pub(crate) const POLL_TOLERANCE: Duration = Duration::from_millis(125);

/// Flags for the seeds of the fake cloud from 0.
pub(crate) fn seeds(count: u64) -> impl Iterator<Item = String> {
    (0..count).map(|seed| format!("--seed={seed}"))
}

/// The kind of a fault: calls are rejected with this status and code.
pub(crate) fn error_code(status: u16, code: &str) -> Value {
    json!({"code": {"status": status, "code": code}})
}

/// A fault of this kind in a percentage of the calls.
pub(crate) fn percent(action: &str, percent: u8, kind: &Value) -> Value {
    json!({"action": action, "percent": percent, "kind": kind})
}

pub(crate) fn minutes(minutes: u64) -> Deadline {
    seconds(60 * minutes)
}

pub(crate) fn seconds(seconds: u64) -> Deadline {
    Deadline::after(Duration::from_secs(seconds))
}

pub(crate) fn node_one() -> InstanceId {
    "i-one".parse().unwrap()
}

pub(crate) fn node_two() -> InstanceId {
    "i-two".parse().unwrap()
}

/// A node of [`Setup::with_nodes`].
pub(crate) fn node(number: usize) -> InstanceId {
    format!("i-{number}").parse().unwrap()
}

pub(crate) fn zone(letter: &str) -> ZoneId {
    format!("cn-beijing-{letter}").parse().unwrap()
}

/// One attachment to the node, complete.
pub(crate) fn attached_to(node: &InstanceId) -> Vec<(String, String)> {
    vec![(node.to_string(), "Attached".to_owned())]
}
