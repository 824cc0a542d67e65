//! A disk as the world knows it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::spread::before;
use super::world::World;

/// Where a disk is in its life, attachments aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Phase {
    Creating,
    Ready,
    /// Deleted, though its resources are not free yet. Nobody sees it.
    Deleting,
}

/// How far an attachment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Link {
    Attaching,
    Attached,
    Detaching,
}

/// An instance that holds a disk, is about to, or is about to let go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Attachment {
    pub(crate) instance: String,
    pub(crate) link: Link,
    pub(crate) device: String,
    pub(crate) since: Timestamp,
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// The system disk of an instance.
    pub(crate) system: bool,
    /// Pay-as-you-go, so that it can be moved between instances.
    pub(crate) portable: bool,
    pub(crate) snapshot: Option<String>,
    pub(crate) encrypted: bool,
    pub(crate) kms_key: Option<String>,
    pub(crate) provisioned_iops: u64,
    pub(crate) bursting: bool,
    pub(crate) resource_group: Option<String>,
    pub(crate) delete_with_instance: bool,
    /// The only instance that an elastic ephemeral disk can be attached to, once there was one.
    pub(crate) bound_to: Option<String>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) created: Timestamp,
    pub(crate) attached: Option<Timestamp>,
    pub(crate) detached: Option<Timestamp>,
    /// Still being filled from its snapshot.
    pub(crate) loading: bool,
    /// The size it is growing to.
    pub(crate) growing: Option<u32>,
    /// When its category was last changed.
    pub(crate) changed: Option<Timestamp>,
    /// An injected outcome: the next detach never ends.
    pub(crate) sticks: bool,
    /// What a torn read shows as status.
    #[serde(skip)]
    pub(crate) shown_status: Option<&'static str>,
    /// What a torn read shows as the instance that holds it.
    #[serde(skip)]
    pub(crate) shown_holder: Option<Option<Attachment>>,
    /// Why it is locked, as far as a read shows it.
    #[serde(skip)]
    pub(crate) shown_lock: Option<String>,
    /// A read leaves the status out, so that the row makes no sense.
    #[serde(skip)]
    pub(crate) unreadable: bool,
}

impl DiskRow {
    /// `Status` in the API. A shared disk is `In_use` while anybody holds it.
    pub(crate) fn status(&self) -> &'static str {
        let any = |link| self.attachments.iter().any(|a| a.link == link);
        if let Some(status) = self.shown_status {
            return status;
        }
        match self.phase {
            Phase::Creating => "Creating",
            Phase::Deleting => "Deleting",
            Phase::Ready if any(Link::Attached) => "In_use",
            Phase::Ready if any(Link::Attaching) => "Attaching",
            Phase::Ready if any(Link::Detaching) => "Detaching",
            Phase::Ready => "Available",
        }
    }

    /// Who `InstanceId` and `Device` name: nobody where several may hold the disk.
    pub(crate) fn holder(&self) -> Option<&Attachment> {
        match &self.shown_holder {
            Some(holder) => holder.as_ref(),
            None => self.shown().next().filter(|_| !self.multi_attach),
        }
    }

    /// Whether descriptions tell since when it is attached, and not when it was last detached.
    pub(crate) fn is_held(&self) -> bool {
        self.attachments.iter().any(|a| a.link == Link::Attached)
    }

    pub(crate) fn on(&self, instance: &str) -> Option<&Attachment> {
        self.attachments.iter().find(|a| a.instance == instance)
    }

    /// The attachments that descriptions show: those that are there, or on their way off.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &Attachment> {
        self.attachments
            .iter()
            .filter(|a| a.link != Link::Attaching)
    }
}

impl World {
    /// The disk, unless it is deleted.
    pub(crate) fn disk(&self, id: &str) -> Option<&DiskRow> {
        self.disks
            .get(id)
            .filter(|row| row.phase != Phase::Deleting)
    }

    /// Changes a disk that is there, and lets the replica know.
    pub(crate) fn change_disk(&mut self, id: &str, change: impl FnOnce(&mut DiskRow)) {
        let Some(row) = self.disks.get_mut(id) else {
            return;
        };
        let old = row.clone();
        change(row);
        if *row == old {
            return;
        }
        let new = Some(row.clone()).filter(|row| row.phase != Phase::Deleting);
        self.note_disk(id, Some(&old), new.as_ref());
    }

    pub(crate) fn put_disk(&mut self, row: DiskRow) {
        self.note_disk(&row.id, None, Some(&row));
        self.disks.insert(row.id.clone(), row);
    }

    /// Removes a disk at once.
    pub(crate) fn drop_disk(&mut self, id: &str) {
        if let Some(old) = self.disks.remove(id)
            && old.phase != Phase::Deleting
        {
            self.note_disk(id, Some(&old), None);
        }
    }

    fn index_disk(&mut self, old: Option<&DiskRow>, new: Option<&DiskRow>) {
        if let Some(row) = old {
            for attachment in &row.attachments {
                self.held_by.remove(&attachment.instance, &row.id);
            }
            if let Some(snapshot) = &row.snapshot {
                self.made_from.remove(snapshot, &row.id);
            }
        }
        if let Some(row) = new {
            for attachment in &row.attachments {
                self.held_by.add(&attachment.instance, &row.id);
            }
            if let Some(snapshot) = &row.snapshot {
                self.made_from.add(snapshot, &row.id);
            }
        }
    }

    fn note_disk(&mut self, id: &str, old: Option<&DiskRow>, new: Option<&DiskRow>) {
        self.index_disk(old, new);
        let memory = self.config.stale.memory();
        if memory.is_zero() {
            self.old_disks.clear();
        } else {
            let horizon = before(self.now, memory);
            self.old_disks.note(id, old, new, self.now, horizon);
        }
    }

    pub(crate) fn disk_created(&mut self, id: &str, success: bool) {
        if success {
            self.change_disk(id, |row| row.phase = Phase::Ready);
        } else {
            self.drop_disk(id);
        }
    }
}
