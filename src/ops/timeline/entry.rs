//! The entries of a timeline, from all sources, in the order of time.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;

use super::history::{CallRecord, DiskState, History};
use crate::cluster;
use crate::cluster::volume_history::{AttachmentState, VolumeEvent, VolumeHistory};

/// What is known about a volume.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Timeline {
    /// The requested volume.
    pub(super) volume: String,
    pub(super) disk: Option<String>,
    /// What Kubernetes has recorded; its events and attachments are entries.
    pub(super) found: VolumeHistory,
    /// The disk in the cloud, as a controller has just read it.
    pub(super) cloud: Option<DiskState>,
    /// The oldest first.
    pub(super) entries: Vec<Entry>,
    /// Conditions under which no call for the volume can succeed, as sentences with advice.
    pub(super) obstacles: Vec<String>,
    /// Whether a source was read, even if it has nothing about the volume.
    pub(super) is_read: bool,
    /// What could not be read, and why.
    pub(super) unavailable: Vec<String>,
    pub(super) now: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(super) enum Entry {
    Call { source: String, call: CallRecord },
    Event(VolumeEvent),
    Attachment(AttachmentState),
}

impl Entry {
    pub(super) fn time(&self) -> Option<Timestamp> {
        match self {
            Self::Call { call, .. } => Some(call.started),
            Self::Event(event) => event.time,
            Self::Attachment(attachment) => attachment.since,
        }
    }
}

impl Timeline {
    /// Adds what Kubernetes has recorded.
    pub(super) fn add_kubernetes(&mut self, mut history: VolumeHistory) {
        self.is_read = true;
        self.disk = self.disk.take().or(history.disk.take());
        if history.claim.is_none() && history.persistent_volume.is_none() {
            self.obstacles.push(missing(&self.volume));
        }
        self.entries.extend(history.events.drain(..).map(Entry::Event));
        self.entries
            .extend(history.attachments.drain(..).map(Entry::Attachment));
        self.found = history;
        self.sort();
    }

    /// Namespace and name.
    pub(super) fn claim(&self) -> Option<String> {
        let claim = self.found.claim.as_ref();
        claim.map(|(namespace, name)| format!("{namespace}/{name}"))
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
            Entry::Attachment(attachment) => Some(&attachment.node),
            Entry::Call { .. } | Entry::Event(_) => None,
        });
        attached.chain(&self.found.pod_nodes).cloned().collect()
    }

    /// The IDs under which processes of the driver may know the volume.
    pub(super) fn keys(&self) -> Vec<String> {
        let given = (!self.volume.contains('/')).then(|| self.volume.clone());
        let mut keys: Vec<String> = [self.disk.clone(), self.found.persistent_volume.clone(), given]
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
