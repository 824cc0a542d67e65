//! The entries of a timeline, from all sources, in the order of time.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;

use super::history::{CallRecord, DiskState, History};
use crate::cluster;
use crate::cluster::volume_history::{VolumeEvent, VolumeHistory};
use crate::cluster::volume_zones::VolumeZones;

/// What is known about a volume.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Timeline {
    /// The requested volume.
    pub(super) volume: String,
    pub(super) disk: Option<String>,
    pub(super) persistent_volume: Option<String>,
    /// Namespace and name.
    pub(super) claim: Option<String>,
    /// The disk in the cloud, as a controller has just read it.
    pub(super) cloud: Option<DiskState>,
    /// The oldest first.
    pub(super) entries: Vec<Entry>,
    /// Conditions under which no call for the volume can succeed, as sentences with advice.
    pub(super) obstacles: Vec<String>,
    /// Where the disk is or can be, if that is restricted.
    pub(super) zones: Option<VolumeZones>,
    /// The nodes of the pods that use the claim.
    pub(super) pod_nodes: Vec<String>,
    /// Whether a source was read, even if it has nothing about the volume.
    pub(super) is_read: bool,
    /// What could not be read, and why.
    pub(super) unavailable: Vec<String>,
    pub(super) now: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(super) enum Entry {
    Call {
        source: String,
        call: CallRecord,
    },
    Event(VolumeEvent),
    Attachment {
        node: String,
        since: Option<Timestamp>,
        state: String,
    },
}

impl Entry {
    pub(super) fn time(&self) -> Option<Timestamp> {
        match self {
            Self::Call { call, .. } => Some(call.started),
            Self::Event(event) => event.time,
            Self::Attachment { since, .. } => *since,
        }
    }
}

impl Timeline {
    pub(super) fn new(volume: &str, now: Timestamp) -> Self {
        Self {
            volume: volume.to_owned(),
            now,
            ..Self::default()
        }
    }

    /// Adds what Kubernetes has recorded.
    pub(super) fn add_kubernetes(&mut self, history: &VolumeHistory) {
        self.is_read = true;
        self.disk = self.disk.take().or_else(|| history.disk.clone());
        self.persistent_volume.clone_from(&history.persistent_volume);
        self.zones.clone_from(&history.zones);
        self.pod_nodes.clone_from(&history.pod_nodes);
        if history.claim.is_none() && history.persistent_volume.is_none() {
            self.obstacles.push(missing(&self.volume));
        }
        let claim = history.claim.as_ref();
        self.claim = claim.map(|(namespace, name)| format!("{namespace}/{name}"));
        let events = history.events.iter().cloned().map(Entry::Event);
        self.entries.extend(events);
        for attachment in &history.attachments {
            let state = match (&attachment.error, attachment.is_deleted, attachment.is_attached) {
                (Some(error), ..) => error.clone(),
                (None, true, _) => "waits for the detach".to_owned(),
                (None, false, true) => "attached".to_owned(),
                (None, false, false) => "waits for the attach".to_owned(),
            };
            self.entries.push(Entry::Attachment {
                node: attachment.node.clone(),
                since: attachment.created,
                state,
            });
        }
        self.sort();
    }

    /// The value, or nothing and the error among the unavailable sources.
    pub(super) fn available<T>(&mut self, value: cluster::Result<T>) -> Option<T> {
        let failed = |error: cluster::Error| self.unavailable.push(error.for_user());
        value.map_err(failed).ok()
    }

    /// Adds the history that a process of the driver has.
    pub(super) fn add_driver(&mut self, source: &str, history: History) {
        if history.volume.starts_with("d-") {
            self.disk = Some(history.volume);
        }
        self.cloud = history.disk.or(self.cloud.take());
        let calls = history.calls.into_iter().map(|call| Entry::Call {
            source: source.to_owned(),
            call,
        });
        self.entries.extend(calls);
        self.sort();
    }

    /// The nodes that the volume is attached to, and those of the pods that use its claim.
    pub(super) fn nodes(&self) -> BTreeSet<String> {
        let attached = self.entries.iter().filter_map(|entry| match entry {
            Entry::Attachment { node, .. } => Some(node),
            Entry::Call { .. } | Entry::Event(_) => None,
        });
        attached.chain(&self.pod_nodes).cloned().collect()
    }

    /// The IDs under which processes of the driver may know the volume.
    pub(super) fn keys(&self) -> Vec<String> {
        let given = (!self.volume.contains('/')).then(|| self.volume.clone());
        let mut keys: Vec<String> = [self.disk.clone(), self.persistent_volume.clone(), given]
            .into_iter()
            .flatten()
            .collect();
        keys.dedup();
        keys
    }

    fn sort(&mut self) {
        self.entries.sort_by_key(Entry::time);
    }
}

fn missing(volume: &str) -> String {
    match volume.split_once('/') {
        Some((namespace, name)) => format!(
            "Kubernetes has no PersistentVolumeClaim {name} in the namespace {namespace}. \
             `kubectl get pvc --all-namespaces` lists all."
        ),
        None => format!(
            "Kubernetes has no PersistentVolume of this driver with the name or the disk ID {volume}. For a claim, pass \
             NAMESPACE/NAME."
        ),
    }
}
