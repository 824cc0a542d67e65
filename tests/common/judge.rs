//! The judge: what the cloud has in the end, and what it was asked on the way, against what the
//! callers wanted and were told.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::facts::{Facts, Span};
use crate::state::links;

/// One call of the driver, as the cloud's log has it.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) at: Timestamp,
    pub(crate) action: String,
    pub(crate) params: BTreeMap<String, String>,
}

/// What is wrong, by kind.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// There, and nobody wants it.
    pub(crate) leaked: Vec<String>,
    /// Twice, and wanted once.
    pub(crate) doubled: Vec<String>,
    /// Taken from a node, put on one, or deleted, and nobody asked for it; or gone.
    pub(crate) stolen: Vec<String>,
    /// Told what is not so.
    pub(crate) false_answers: Vec<String>,
}

impl Verdict {
    /// Of a run that is over. `own` tells whether an object without a caller is the driver's own
    /// affair, such as the snapshot behind a clone while it lasts.
    pub(crate) fn of(facts: &Facts, state: &Value, calls: &[Asked]) -> Self {
        let mut verdict = Self {
            false_answers: facts.false_answers.clone(),
            ..Self::default()
        };
        verdict.look_at_disks(facts, &state["disks"]);
        verdict.look_at_snapshots(facts, &state["snapshots"]);
        verdict.look_at_calls(facts, calls);
        verdict
    }

    /// Whether nothing at all is wrong.
    pub(crate) fn is_clean(&self) -> bool {
        self.is_safe() && self.false_answers.is_empty()
    }

    /// Whether no disk or snapshot is lost, left behind, doubled or taken.
    pub(crate) fn is_safe(&self) -> bool {
        let wrong = [&self.leaked, &self.doubled, &self.stolen];
        wrong.iter().all(|wrong| wrong.is_empty())
    }

    /// The counts, in one line.
    pub(crate) fn counts(&self) -> String {
        format!(
            "{} leaked, {} doubled, {} stolen, {} wrongly reported",
            self.leaked.len(),
            self.doubled.len(),
            self.stolen.len(),
            self.false_answers.len()
        )
    }

    fn look_at_disks(&mut self, facts: &Facts, disks: &Value) {
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        for row in there(disks) {
            let name = name(row);
            *seen.entry(name).or_default() += 1;
            let wanted = facts.volumes.get(name);
            let Some((wanted, (size, nodes))) = wanted.and_then(|v| Some((v, v.end()?))) else {
                self.leaked.push(format!("disk {name}: {row}"));
                continue;
            };
            if wanted.id.as_deref() != row["id"].as_str() {
                let told = &wanted.id;
                self.leaked
                    .push(format!("disk {name}, told as {told:?}: {row}"));
            }
            if row["size"] != size {
                let has = &row["size"];
                let text = format!("disk {name} should have {size} GiB and has {has}");
                self.false_answers.push(text);
            }
            let nodes: Vec<_> = nodes
                .into_iter()
                .map(|node| (node, "Attached".to_owned()))
                .collect();
            if links(row) != nodes {
                let text = format!(
                    "disk {name} should be on {nodes:?} and is on {:?}",
                    links(row)
                );
                self.stolen.push(text);
            }
        }
        let wanted = facts
            .volumes
            .values()
            .filter(|volume| volume.end().is_some());
        for volume in wanted {
            match seen.get(volume.name.as_str()) {
                None => self.stolen.push(format!("disk {} is gone", volume.name)),
                Some(1) => {}
                Some(n) => self
                    .doubled
                    .push(format!("disk {} is there {n} times", volume.name)),
            }
        }
    }

    fn look_at_snapshots(&mut self, facts: &Facts, snapshots: &Value) {
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        for row in there(snapshots) {
            let name = name(row);
            *seen.entry(name).or_default() += 1;
            let wanted = facts.snapshots.get(name);
            let wanted = wanted.filter(|snapshot| snapshot.deleted.told.is_none());
            match wanted {
                Some(snapshot) if snapshot.id.as_deref() == row["id"].as_str() => {}
                _ => self.leaked.push(format!("snapshot {name}: {row}")),
            }
        }
        let wanted = facts.snapshots.values();
        for snapshot in wanted.filter(|snapshot| snapshot.deleted.told.is_none()) {
            match seen.get(snapshot.name.as_str()) {
                None => self
                    .stolen
                    .push(format!("snapshot {} is gone", snapshot.name)),
                Some(1) => {}
                Some(n) => {
                    let text = format!("snapshot {} is there {n} times", snapshot.name);
                    self.doubled.push(text);
                }
            }
        }
    }

    /// Nothing is attached, detached or deleted but what was asked for at the time.
    fn look_at_calls(&mut self, facts: &Facts, calls: &[Asked]) {
        let volumes: BTreeMap<&str, _> = facts
            .volumes
            .values()
            .filter_map(|volume| Some((volume.id.as_deref()?, volume)))
            .collect();
        let snapshots: BTreeMap<&str, Span> = facts
            .snapshots
            .values()
            .filter_map(|snapshot| Some((snapshot.id.as_deref()?, snapshot.deleted)))
            .collect();
        for call in calls {
            let param = |name: &str| call.params.get(name).map_or("", String::as_str);
            let volume = volumes.get(param("DiskId"));
            let on_its_node =
                || volume.is_some_and(|volume| volume.node.as_deref() == Some(param("InstanceId")));
            let wanted = match call.action.as_str() {
                "AttachDisk" => {
                    on_its_node() && volume.is_some_and(|v| v.published.covers(call.at))
                }
                "DetachDisk" => {
                    on_its_node() && volume.is_some_and(|v| v.unpublished.covers(call.at))
                }
                "DeleteDisk" => volume.is_some_and(|v| v.deleted.covers(call.at)),
                "DeleteSnapshot" => {
                    let deleted = snapshots.get(param("SnapshotId"));
                    // A snapshot without a caller is one that stood behind a clone.
                    deleted.is_none_or(|deleted| deleted.covers(call.at))
                }
                _ => true,
            };
            if !wanted {
                self.stolen.push(format!("nobody asked for {call:?}"));
            }
        }
    }
}

fn there(rows: &Value) -> impl Iterator<Item = &Value> {
    let rows = rows.as_array().into_iter().flatten();
    rows.filter(|row| row["phase"] != "Deleting")
}

fn name(row: &Value) -> &str {
    let name = &row["tags"]["diskplugin.csi.example/name"];
    name.as_str().unwrap_or_default()
}
