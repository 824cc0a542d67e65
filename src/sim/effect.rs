//! What the world wants done outside itself, such as a loop device behind an attached disk. The
//! state changes only when the end of the work is reported.

use std::collections::BTreeMap;

use super::agenda::Due;
use super::world::World;

/// A piece of work outside the world.
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
        /// Whether a device shows it now; else it needs a new attachment.
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

/// A piece of work with the number under which its end is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) id: u64,
    pub(crate) work: Work,
}

/// The work that was begun and has not ended.
#[derive(Debug)]
pub(crate) struct Effects {
    backed: bool,
    last: u64,
    outbox: Vec<Effect>,
    running: BTreeMap<u64, Due>,
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

    pub(crate) fn start(&mut self, work: Work, then: Due) {
        self.last += 1;
        self.running.insert(self.last, then);
        self.outbox.push(Effect {
            id: self.last,
            work,
        });
    }

    /// What is to be done, once.
    pub(crate) fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.outbox)
    }

    pub(crate) fn end(&mut self, id: u64) -> Option<Due> {
        self.running.remove(&id)
    }
}

impl World {
    /// The work that something due needs before it has happened.
    pub(crate) fn work_of(&self, due: &Due) -> Option<Work> {
        let serial = |disk: &str| self.disks.get(disk).map(|row| row.serial.clone());
        Some(match due {
            Due::Created { disk } => {
                let row = self.disks.get(disk)?;
                Work::CreateDisk {
                    serial: row.serial.clone(),
                    gib: row.size,
                    snapshot: row.snapshot.clone(),
                }
            }
            Due::Attached { disk, instance } => Work::Attach {
                serial: serial(disk)?,
                instance: instance.clone(),
            },
            Due::Detached { disk, instance } => Work::Detach {
                serial: serial(disk)?,
                instance: instance.clone(),
            },
            Due::Resized {
                disk,
                size,
                visible,
            } => Work::Resize {
                serial: serial(disk)?,
                gib: *size,
                visible: *visible,
            },
            Due::Deleted { serial, .. } => Work::RemoveDisk {
                serial: serial.clone(),
            },
            Due::Cut { snapshot } => {
                let row = self.snapshots.get(snapshot)?;
                Work::Cut {
                    serial: serial(&row.disk)?,
                    snapshot: snapshot.clone(),
                }
            }
            Due::SnapshotDeleted { snapshot } => Work::RemoveSnapshot {
                snapshot: snapshot.clone(),
            },
            Due::Vanished { .. }
            | Due::Loaded { .. }
            | Due::AttachFailed { .. }
            | Due::Modified { .. }
            | Due::Accomplished { .. }
            | Due::SnapshotFailed { .. }
            | Due::SnapshotExpired { .. }
            | Due::Power { .. } => return None,
        })
    }
}
