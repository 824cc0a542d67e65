//! Work outside the state machine, such as setting up a loop device for an attached disk. The state
//! changes only when the work is reported complete.

use std::collections::BTreeMap;

use super::disk::Disks;
use super::event_queue::Event;
use super::snapshot::Snapshots;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Work {
    CreateDisk {
        serial: String,
        gib: u32,
        snapshot: Option<String>,
    },
    RemoveDisk {
        serial: String,
    },
    Attach {
        serial: String,
        instance: String,
    },
    Detach {
        serial: String,
        instance: String,
    },
    Resize {
        serial: String,
        gib: u32,
        /// Whether the attached device grows now; otherwise it grows with the next attachment.
        visible: bool,
    },
    Cut {
        serial: String,
        snapshot: String,
    },
    RemoveSnapshot {
        snapshot: String,
    },
}

/// Work with the ID under which its completion is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) id: u64,
    pub(crate) work: Work,
}

/// Work that was started and is not complete.
#[derive(Debug)]
pub(crate) struct Effects {
    backed: bool,
    last: u64,
    outbox: Vec<Effect>,
    running: BTreeMap<u64, Event>,
}

impl Effects {
    pub(crate) fn new(backed: bool) -> Self {
        Self {
            backed,
            last: 0,
            outbox: Vec::new(),
            running: BTreeMap::new(),
        }
    }

    pub(crate) fn backed(&self) -> bool {
        self.backed
    }

    pub(crate) fn start(&mut self, work: Work, then: Event) {
        self.last += 1;
        self.running.insert(self.last, then);
        self.outbox.push(Effect { id: self.last, work });
    }

    /// The work to perform, each returned once.
    pub(crate) fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.outbox)
    }

    pub(crate) fn end(&mut self, id: u64) -> Option<Event> {
        self.running.remove(&id)
    }
}

/// The work that must complete before the event takes effect.
pub(crate) fn work_of(disks: &Disks, snapshots: &Snapshots, due: &Event) -> Option<Work> {
    let serial = |disk: &str| disks.get_any(disk).map(|row| row.serial.clone());
    Some(match due {
        Event::Created { disk } => {
            let row = disks.get_any(disk)?;
            Work::CreateDisk {
                serial: row.serial.clone(),
                gib: row.size,
                snapshot: row.snapshot.clone(),
            }
        }
        Event::Attached { disk, instance } => Work::Attach {
            serial: serial(disk)?,
            instance: instance.clone(),
        },
        Event::Detached { disk, instance } => Work::Detach {
            serial: serial(disk)?,
            instance: instance.clone(),
        },
        Event::Resized { disk, size, visible } => Work::Resize {
            serial: serial(disk)?,
            gib: *size,
            visible: *visible,
        },
        Event::Deleted { serial, .. } => Work::RemoveDisk { serial: serial.clone() },
        Event::Cut { snapshot } => {
            let row = snapshots.get(snapshot)?;
            Work::Cut {
                serial: serial(&row.disk)?,
                snapshot: snapshot.clone(),
            }
        }
        Event::SnapshotDeleted { snapshot } => Work::RemoveSnapshot {
            snapshot: snapshot.clone(),
        },
        Event::Vanished { .. }
        | Event::Loaded { .. }
        | Event::AttachFailed { .. }
        | Event::Modified { .. }
        | Event::Accomplished { .. }
        | Event::SnapshotFailed { .. }
        | Event::SnapshotExpired { .. }
        | Event::PowerState { .. } => return None,
    })
}
