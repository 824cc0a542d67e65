//! Disks.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::api_error::ApiError;
use super::history::{History, Retention};
use super::index::Index;

/// The state of a disk apart from its attachments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub(crate) enum Phase {
    #[default]
    Creating,
    Ready,
    /// Deleted, while its resources are not released yet. Reads omit it.
    Deleting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum AttachmentState {
    Attaching,
    Attached,
    Detaching,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Attachment {
    pub(crate) instance: String,
    pub(crate) state: AttachmentState,
    pub(crate) device: String,
    pub(crate) since: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub(crate) struct DiskRow {
    pub(crate) id: String,
    pub(crate) serial: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) zone: String,
    pub(crate) category: String,
    pub(crate) level: Option<String>,
    pub(crate) size: u32,
    pub(crate) phase: Phase,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) multi_attach: bool,
    pub(crate) system: bool,
    /// Pay-as-you-go, which can be moved between instances.
    pub(crate) portable: bool,
    pub(crate) snapshot: Option<String>,
    pub(crate) encrypted: bool,
    pub(crate) kms_key: Option<String>,
    pub(crate) provisioned_iops: u64,
    pub(crate) bursting: bool,
    pub(crate) resource_group: Option<String>,
    pub(crate) delete_with_instance: bool,
    /// The only instance that an elastic ephemeral disk can be attached to, once it was attached.
    pub(crate) bound_to: Option<String>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) created: Timestamp,
    pub(crate) attached: Option<Timestamp>,
    pub(crate) detached: Option<Timestamp>,
    /// Its data is still being loaded from the snapshot.
    pub(crate) loading: bool,
    /// The target size of a resize in progress.
    pub(crate) growing: Option<u32>,
    /// Time of the last change of the category.
    pub(crate) changed: Option<Timestamp>,
    /// Injected fault: the next detach never completes.
    pub(crate) detach_stuck: bool,
    /// The status that a torn read returns.
    #[serde(skip)]
    pub(crate) shown_status: Option<&'static str>,
    /// The `InstanceId` and `Device` that a torn read returns.
    #[serde(skip)]
    pub(crate) shown_holder: Option<Option<Attachment>>,
    /// The lock reason that a read returns.
    #[serde(skip)]
    pub(crate) shown_lock: Option<String>,
    /// A read omits the status, which makes the row unreadable.
    #[serde(skip)]
    pub(crate) unreadable: bool,
}

impl DiskRow {
    /// `Status` in the API. A shared disk is `In_use` while it is attached to any instance.
    pub(crate) fn status(&self) -> &'static str {
        let any = |state| self.attachments.iter().any(|a| a.state == state);
        if let Some(status) = self.shown_status {
            return status;
        }
        match self.phase {
            Phase::Creating => "Creating",
            Phase::Deleting => "Deleting",
            Phase::Ready if any(AttachmentState::Attached) => "In_use",
            Phase::Ready if any(AttachmentState::Attaching) => "Attaching",
            Phase::Ready if any(AttachmentState::Detaching) => "Detaching",
            Phase::Ready => "Available",
        }
    }

    /// The attachment in `InstanceId` and `Device`; none for a multi-attach disk.
    pub(crate) fn holder(&self) -> Option<&Attachment> {
        match &self.shown_holder {
            Some(holder) => holder.as_ref(),
            None => self.shown().next().filter(|_| !self.multi_attach),
        }
    }

    /// Whether descriptions contain `AttachedTime` instead of `DetachedTime`.
    pub(crate) fn is_held(&self) -> bool {
        self.attachments.iter().any(|a| a.state == AttachmentState::Attached)
    }

    pub(crate) fn on(&self, instance: &str) -> Option<&Attachment> {
        self.attachments.iter().find(|a| a.instance == instance)
    }

    /// The attachments in descriptions: attached or detaching.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &Attachment> {
        self.attachments
            .iter()
            .filter(|a| a.state != AttachmentState::Attaching)
    }
}

/// All disks, with the index of their instances and their earlier versions.
#[derive(Debug, Default)]
pub(crate) struct Disks {
    rows: BTreeMap<String, DiskRow>,
    by_instance: Index,
    pub(crate) history: History<DiskRow>,
}

impl Disks {
    /// The disk, unless it is deleted.
    pub(crate) fn get(&self, id: &str) -> Option<&DiskRow> {
        self.get_any(id).filter(|row| row.phase != Phase::Deleting)
    }

    /// The disk, or the error of a call for a missing one.
    pub(crate) fn existing(&self, id: &str) -> Result<&DiskRow, ApiError> {
        self.get(id).ok_or_else(|| ApiError::new(404, "InvalidDiskId.NotFound"))
    }

    /// The disk, including one whose deletion is in progress.
    pub(crate) fn get_any(&self, id: &str) -> Option<&DiskRow> {
        self.rows.get(id)
    }

    /// All rows, including those whose deletion is in progress.
    pub(crate) fn rows(&self) -> &BTreeMap<String, DiskRow> {
        &self.rows
    }

    /// The IDs of the disks that are attached to an instance, or are being attached or detached.
    pub(crate) fn ids_on(&self, instance: &str) -> impl Iterator<Item = &String> {
        self.by_instance.of(instance)
    }

    /// The attachments of an instance in any state.
    pub(crate) fn attachments_of<'a>(&'a self, instance: &'a str) -> impl Iterator<Item = &'a Attachment> {
        let rows = self.ids_on(instance).filter_map(|id| self.rows.get(id));
        rows.filter_map(move |row| row.on(instance))
    }

    pub(crate) fn data_disks_of<'a>(&'a self, instance: &'a str) -> impl Iterator<Item = &'a DiskRow> {
        let rows = self.ids_on(instance).filter_map(|id| self.rows.get(id));
        rows.filter(move |row| !row.system && row.on(instance).is_some())
    }

    pub(crate) fn has_copy_of(&self, snapshot: &str) -> bool {
        let mut rows = self.rows.values().filter(|row| row.phase != Phase::Deleting);
        rows.any(|row| row.snapshot.as_deref() == Some(snapshot))
    }

    /// The disk as a read at `time` returns it. In a torn read, status and `InstanceId` are of that time while the
    /// other fields are current.
    pub(crate) fn as_of(&self, id: &str, time: Option<Timestamp>, torn: bool) -> Option<Cow<'_, DiskRow>> {
        let current = self.get(id);
        let Some(old) = time.and_then(|time| self.history.at(id, time)) else {
            return current.map(Cow::Borrowed);
        };
        let old = old.filter(|row| row.phase != Phase::Deleting)?;
        match current {
            // The attachments are newer than the status: they need not agree.
            Some(current) if torn => Some(Cow::Owned(DiskRow {
                shown_status: Some(old.status()),
                shown_holder: Some(old.holder().cloned()),
                ..current.clone()
            })),
            _ => Some(Cow::Borrowed(old)),
        }
    }

    /// Changes a disk if it exists.
    pub(crate) fn change(&mut self, retention: Retention, id: &str, change: impl FnOnce(&mut DiskRow)) {
        let Some(row) = self.rows.get_mut(id) else {
            return;
        };
        let old = row.clone();
        change(row);
        if *row == old {
            return;
        }
        let new = Some(row.clone()).filter(|row| row.phase != Phase::Deleting);
        self.record(retention, id, Some(&old), new.as_ref());
    }

    pub(crate) fn insert(&mut self, retention: Retention, row: DiskRow) {
        self.record(retention, &row.id, None, Some(&row));
        self.rows.insert(row.id.clone(), row);
    }

    pub(crate) fn remove(&mut self, retention: Retention, id: &str) {
        if let Some(old) = self.rows.remove(id)
            && old.phase != Phase::Deleting
        {
            self.record(retention, id, Some(&old), None);
        }
    }

    fn record(&mut self, retention: Retention, id: &str, old: Option<&DiskRow>, new: Option<&DiskRow>) {
        if let Some(row) = old {
            for attachment in &row.attachments {
                self.by_instance.remove(&attachment.instance, &row.id);
            }
        }
        if let Some(row) = new {
            for attachment in &row.attachments {
                self.by_instance.add(&attachment.instance, &row.id);
            }
        }
        self.history.record(id, old, new, retention);
    }
}
