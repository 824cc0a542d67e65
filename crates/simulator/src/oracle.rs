//! Compares the cloud with what the callers asked for. It shares no code with the driver: it reads the state of the
//! fake cloud and its log of calls.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fake_ecs::log::Entry;
use jiff::Timestamp;
use serde_json::Value;

use crate::facts::{Facts, Request, State};
use crate::history::{History, Invariant};
use crate::world::World;

static NULL: Value = Value::Null;
const NAME: &str = "diskplugin.csi.example/name";
/// How the names of temporary snapshots begin.
const CLONE_NAME: &str = "clone-for-";
const CLONE_FOR: &str = "diskplugin.csi.example/clone-for";
/// Refused orders in a minute: a bound of the design. A process that starts has no memory of refusals.
const REFUSALS_PER_MINUTE: usize = 10;
/// DetachDisk is also repeated while DescribeDisks does not return the disk, because its error code shows whether the
/// disk is attached.
const REFUSED_DETACHES_PER_MINUTE: usize = 20;

fn rows(rows: &Value) -> impl Iterator<Item = &Value> {
    rows.as_array().into_iter().flatten()
}

/// The row with this ID; null if it does not exist.
pub(crate) fn row<'a>(all: &'a Value, id: &str) -> &'a Value {
    rows(all).find(|row| row["id"] == *id).unwrap_or(&NULL)
}

/// The disks with the name of this claim that are not being deleted.
pub(crate) fn disks_of<'a>(state: &'a Value, name: &str) -> Vec<&'a Value> {
    rows(&state["disks"])
        .filter(|row| row["tags"][NAME] == *name && row["phase"] != "Deleting")
        .collect()
}

/// The instance and the state of each attachment.
pub(crate) fn attachments(row: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    rows(&row["attachments"])
        .map(|held| (text(&held["instance"]), text(&held["state"])))
        .collect()
}

/// What must be true a while after the cloud is healthy.
pub(crate) fn check_end(world: &World, facts: &Facts) {
    let (state, cloud, history) = (facts.state(), world.state(), &world.history);
    check_progress(history, &state);
    check_disks(history, &state, &cloud);
    let calls = world.cloud.calls();
    for row in rows(&cloud["snapshots"]).filter(|row| row["id"] != *world.snapshot) {
        let is_refused = |call: &Entry| {
            let is_deletion = call.action == "DeleteSnapshot" && row["id"] == *param(call, "SnapshotId");
            is_deletion && is_refused(call)
        };
        let clone = row["tags"][CLONE_FOR].as_str();
        let is_given_up = clone.is_some_and(|name| is_given_up(&state, name) || calls.iter().any(is_refused));
        if !is_given_up || row["retention_days"].is_null() {
            history.violation(Invariant::NoLeak, format!("snapshot {row}"));
        }
    }
    let audit = world.cloud.audit();
    // The temporary snapshot of a clone may be replaced while it is being deleted.
    let duplicates = audit.duplicates().into_iter();
    for duplicate in duplicates.filter(|one| !one.name.starts_with(CLONE_NAME)) {
        history.violation(Invariant::NoDuplicate, format!("{duplicate:?}"));
    }
    check_requested(history, &state, &calls);
    check_budget(history, &state, &calls);
}

/// A line for each writing call that the cloud received, for a trace.
pub(crate) fn describe_calls(world: &World) -> Vec<String> {
    let calls = world.cloud.calls();
    let writes = calls.iter().filter(|call| !call.action.starts_with("Describe"));
    writes
        .map(|call| {
            let sent = call.nonce.as_deref().and_then(|nonce| world.history.sent(nonce));
            let sent = sent.map_or("by an operator".to_owned(), |sent| format!("{:.3}", sent.as_secs_f64()));
            let keys = [
                "DiskName",
                "SnapshotName",
                "DiskId",
                "InstanceId",
                "SnapshotId",
                "Size",
                "NewSize",
                "ClientToken",
            ];
            let params: Vec<_> = keys
                .iter()
                .filter_map(|key| Some(format!("{key}={}", call.params.get(*key)?)))
                .collect();
            let outcome = call.code.as_deref().unwrap_or("OK");
            let created = call
                .created
                .as_deref()
                .map_or(String::new(), |id| format!(", created {id}"));
            format!("{sent} {} {}: {outcome}{created}", call.action, params.join(" "))
        })
        .collect()
}

/// The clone whose provisioner has stopped: the cloud deletes its temporary snapshot after its retention.
fn is_given_up(state: &State, name: &str) -> bool {
    let volume = state.volumes.get(name);
    volume.is_some_and(|volume| volume.is_gone && volume.id.is_none())
}

fn check_progress(history: &History, state: &State) {
    for (name, volume) in &state.volumes {
        if !volume.is_done {
            history.violation(Invariant::Progress, format!("{name} is not done: {}", volume.doing));
        }
    }
}

fn check_disks(history: &History, state: &State, cloud: &Value) {
    let mut expected: BTreeSet<&str> = state.foreign.iter().map(String::as_str).collect();
    for (name, volume) in state.volumes.iter().filter(|(_, volume)| volume.is_done) {
        let Some(id) = volume.id.as_deref().filter(|_| !volume.is_gone) else {
            continue;
        };
        expected.insert(id);
        let row = row(&cloud["disks"], id);
        if row.is_null() {
            history.violation(Invariant::NoLoss, format!("{name} ({id}) does not exist any more"));
            continue;
        }
        if row["size"] != volume.gib {
            history.violation(
                Invariant::NoLoss,
                format!("{name} ({id}) should have {} GiB: {row}", volume.gib),
            );
        }
        let wanted = volume.node.iter().map(|node| (node.clone(), "Attached".to_owned()));
        if !volume.is_touched && attachments(row) != Vec::from_iter(wanted) {
            history.violation(
                Invariant::NoLoss,
                format!("{name} ({id}) should be on {:?}: {row}", volume.node),
            );
        }
    }
    let unfinished = |row: &Value| {
        let name = row["tags"][NAME].as_str().and_then(|name| state.volumes.get(name));
        name.is_some_and(|volume| !volume.is_done)
    };
    for row in rows(&cloud["disks"]) {
        let id = row["id"].as_str().unwrap_or_default();
        if row["system"] != true && !expected.contains(id) && !unfinished(row) {
            history.violation(Invariant::NoLeak, format!("disk {row}"));
        }
    }
    for id in &state.foreign {
        if row(&cloud["disks"], id).is_null() {
            history.violation(
                Invariant::OnlyRequested,
                format!("disk {id} of an operator was deleted"),
            );
        }
    }
}

fn check_requested(history: &History, state: &State, calls: &[Entry]) {
    let created: BTreeMap<&str, &str> = calls
        .iter()
        .filter_map(|call| Some((call.created.as_deref()?, param(call, "SnapshotName"))))
        .collect();
    for call in calls {
        let nonce = call.nonce.as_deref().unwrap_or_default();
        let Some(sent) = history.sent(nonce).filter(|_| !call.params.is_empty()) else {
            continue;
        };
        let (disk, node) = (param(call, "DiskId"), param(call, "InstanceId"));
        let is_requested = |request: &Request| match (call.action.as_str(), request) {
            ("CreateDisk", Request::CreateDisk { name } | Request::Clone { name }) => name == param(call, "DiskName"),
            ("AttachDisk", Request::Attach { disk: asked, node: on }) => asked == disk && on == node,
            ("DetachDisk", Request::Detach { disk: asked, node: on }) => asked == disk && on == node,
            ("ResizeDisk", Request::Resize { disk: asked }) => asked == disk,
            ("DeleteDisk", Request::DeleteDisk { disk: asked }) => asked == disk,
            ("CreateSnapshot", Request::CreateSnapshot { name }) => name == param(call, "SnapshotName"),
            ("CreateSnapshot", Request::Clone { name }) => {
                param(call, "SnapshotName").strip_prefix(CLONE_NAME) == Some(name)
            }
            ("DeleteSnapshot", Request::DeleteSnapshot { snapshot }) => snapshot == param(call, "SnapshotId"),
            // Also when the clone is deleted.
            ("DeleteSnapshot", Request::Clone { .. } | Request::DeleteDisk { .. }) => {
                let name = created.get(param(call, "SnapshotId"));
                name.is_some_and(|name| name.starts_with(CLONE_NAME))
            }
            _ => false,
        };
        let writes = [
            "CreateDisk",
            "AttachDisk",
            "DetachDisk",
            "ResizeDisk",
            "DeleteDisk",
            "CreateSnapshot",
            "DeleteSnapshot",
        ];
        if writes.contains(&call.action.as_str()) && !state.was_requested(sent, is_requested) {
            let text = format!("{} {:?}, sent at {:.3}", call.action, call.params, sent.as_secs_f64());
            history.violation(Invariant::OnlyRequested, text);
        }
    }
}

fn param<'a>(call: &'a Entry, name: &str) -> &'a str {
    call.params.get(name).map_or("", String::as_str)
}

fn is_refused(call: &Entry) -> bool {
    let is_throttled = call.code.as_deref().is_some_and(|code| code.starts_with("Throttling"));
    call.status.is_some_and(|status| (400..500).contains(&status)) && !is_throttled
}

fn check_budget(history: &History, state: &State, calls: &[Entry]) {
    let mut recent: BTreeMap<String, VecDeque<Timestamp>> = BTreeMap::new();
    for call in calls {
        let is_own = call.nonce.as_deref().is_some_and(|nonce| history.sent(nonce).is_some());
        // Requests whose signature is not accepted have no parameters in the log.
        if !is_own || !is_refused(call) || call.action.starts_with("Describe") || call.params.is_empty() {
            continue;
        }
        let keys = [
            "DiskId",
            "InstanceId",
            "SnapshotId",
            "DiskName",
            "SnapshotName",
            "ZoneId",
            "DiskCategory",
        ];
        let order = keys.map(|key| param(call, key)).join(" ");
        let times = recent.entry(format!("{} {order}", call.action)).or_default();
        times.push_back(call.at);
        while times
            .front()
            .is_some_and(|first| call.at.duration_since(*first).as_secs() >= 60)
        {
            times.pop_front();
        }
        let most = match call.action.as_str() {
            "DetachDisk" => REFUSED_DETACHES_PER_MINUTE,
            _ => REFUSALS_PER_MINUTE,
        };
        let most = most * (1 + state.kills);
        if times.len() == most + 1 {
            let text = format!(
                "{} {order}: more than {most} refusals in a minute: {:?}",
                call.action, call.code
            );
            history.violation(Invariant::Budget, text);
        }
    }
}
