//! Compares the final state of the cloud and its calls with the expected state.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::expected::{Expected, Interval};
use super::state::attachments;

/// A call in the fake cloud's log.
#[derive(Debug)]
pub(crate) struct CloudCall {
    pub(crate) at: Timestamp,
    pub(crate) action: String,
    pub(crate) params: BTreeMap<String, String>,
}

/// Deviations from the expected state, by kind.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Exists, but is not expected.
    pub(crate) leaked: Vec<String>,
    /// Exists more than once.
    pub(crate) duplicated: Vec<String>,
    /// Attached, detached or deleted without a request, or missing.
    pub(crate) unexpected: Vec<String>,
    pub(crate) incorrect_responses: Vec<String>,
}

impl Findings {
    pub(crate) fn of(expected: &Expected, state: &Value, calls: &[CloudCall]) -> Self {
        let mut findings = Self {
            incorrect_responses: expected.incorrect_responses.clone(),
            ..Self::default()
        };
        findings.check_disks(expected, &state["disks"]);
        findings.check_snapshots(expected, &state["snapshots"]);
        findings.check_calls(expected, calls);
        findings
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.is_safe() && self.incorrect_responses.is_empty()
    }

    /// Whether no disk or snapshot is lost, left behind, duplicated or taken.
    pub(crate) fn is_safe(&self) -> bool {
        let wrong = [&self.leaked, &self.duplicated, &self.unexpected];
        wrong.iter().all(|wrong| wrong.is_empty())
    }

    pub(crate) fn counts(&self) -> String {
        format!(
            "{} leaked, {} duplicated, {} unexpected, {} incorrect responses",
            self.leaked.len(),
            self.duplicated.len(),
            self.unexpected.len(),
            self.incorrect_responses.len()
        )
    }

    fn check_disks(&mut self, expected: &Expected, disks: &Value) {
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        for row in existing(disks) {
            let name = name(row);
            *seen.entry(name).or_default() += 1;
            let wanted = expected.volumes.get(name);
            let Some((wanted, (size, nodes))) = wanted.and_then(|v| Some((v, v.end()?))) else {
                self.leaked.push(format!("disk {name}: {row}"));
                continue;
            };
            if wanted.id.as_deref() != row["id"].as_str() {
                let reported = &wanted.id;
                self.leaked
                    .push(format!("disk {name}, reported as {reported:?}: {row}"));
            }
            if row["size"] != size {
                let has = &row["size"];
                let text = format!("disk {name} should have {size} GiB but has {has}");
                self.incorrect_responses.push(text);
            }
            let nodes: Vec<_> = nodes.into_iter().map(|node| (node, "Attached".to_owned())).collect();
            if attachments(row) != nodes {
                let text = format!(
                    "disk {name} should be attached to {nodes:?} but is attached to {:?}",
                    attachments(row)
                );
                self.unexpected.push(text);
            }
        }
        let wanted = expected.volumes.values().filter(|volume| volume.end().is_some());
        for volume in wanted {
            self.check_count("disk", &volume.name, seen.get(volume.name.as_str()));
        }
    }

    fn check_count(&mut self, kind: &str, name: &str, count: Option<&u32>) {
        match count {
            None => self.unexpected.push(format!("{kind} {name} is missing")),
            Some(1) => {}
            Some(n) => self.duplicated.push(format!("{kind} {name} exists {n} times")),
        }
    }

    fn check_snapshots(&mut self, expected: &Expected, snapshots: &Value) {
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        for row in existing(snapshots) {
            let name = name(row);
            *seen.entry(name).or_default() += 1;
            let wanted = expected.snapshots.get(name);
            let wanted = wanted.filter(|snapshot| snapshot.deleted.completed.is_none());
            match wanted {
                Some(snapshot) if snapshot.id.as_deref() == row["id"].as_str() => {}
                _ => self.leaked.push(format!("snapshot {name}: {row}")),
            }
        }
        let wanted = expected.snapshots.values();
        for snapshot in wanted.filter(|snapshot| snapshot.deleted.completed.is_none()) {
            self.check_count("snapshot", &snapshot.name, seen.get(snapshot.name.as_str()));
        }
    }

    /// Checks that every attach, detach and deletion was requested at its time.
    fn check_calls(&mut self, expected: &Expected, calls: &[CloudCall]) {
        let volumes: BTreeMap<&str, _> = expected
            .volumes
            .values()
            .filter_map(|volume| Some((volume.id.as_deref()?, volume)))
            .collect();
        let snapshots: BTreeMap<&str, Interval> = expected
            .snapshots
            .values()
            .filter_map(|snapshot| Some((snapshot.id.as_deref()?, snapshot.deleted)))
            .collect();
        for call in calls {
            let param = |name: &str| call.params.get(name).map_or("", String::as_str);
            let volume = volumes.get(param("DiskId"));
            let on_its_node = || volume.is_some_and(|volume| volume.node.as_deref() == Some(param("InstanceId")));
            let wanted = match call.action.as_str() {
                "AttachDisk" => on_its_node() && volume.is_some_and(|v| v.published.covers(call.at)),
                "DetachDisk" => on_its_node() && volume.is_some_and(|v| v.unpublished.covers(call.at)),
                "DeleteDisk" => volume.is_some_and(|v| v.deleted.covers(call.at)),
                "DeleteSnapshot" => {
                    let deleted = snapshots.get(param("SnapshotId"));
                    // A snapshot without a caller is the temporary source of a clone.
                    deleted.is_none_or(|deleted| deleted.covers(call.at))
                }
                _ => true,
            };
            if !wanted {
                self.unexpected.push(format!("not requested: {call:?}"));
            }
        }
    }
}

fn existing(rows: &Value) -> impl Iterator<Item = &Value> {
    let rows = rows.as_array().into_iter().flatten();
    rows.filter(|row| row["phase"] != "Deleting")
}

fn name(row: &Value) -> &str {
    let name = &row["tags"]["diskplugin.csi.example/name"];
    name.as_str().unwrap_or_default()
}
