//! What the verbs are asked for, parsed.

use super::path::VolumePath;
use crate::model::{Bytes, DiskId, Filesystem, MountFlags, Serial, Tuning};

/// A volume and the serial that its device shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// The disk.
    pub id: DiskId,
    /// The serial of its device.
    pub serial: Serial,
}

impl Volume {
    /// A volume whose serial the controller passed on; else it is the id without `d-` (ECS API,
    /// `SerialNumber`).
    #[must_use]
    pub fn new(id: DiskId, serial: Option<Serial>) -> Self {
        let serial = serial.unwrap_or_else(|| Serial::of_disk(&id));
        Self { id, serial }
    }

    /// Whether the serial is the one that the id says. Calls that carry only the id find no other one.
    #[must_use]
    pub fn has_serial_of_id(&self) -> bool {
        self.serial == Serial::of_disk(&self.id)
    }
}

/// How a volume is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// As a device.
    Block,
    /// As a directory.
    Mount {
        /// The filesystem it must have, or be given when it is blank.
        filesystem: Filesystem,
        /// Options of the mount.
        flags: MountFlags,
    },
}

/// Make a volume ready on this node.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The volume.
    pub volume: Volume,
    /// Where it is mounted for the node.
    pub staging: VolumePath,
    /// How it is used.
    pub access: Access,
    /// Whether nothing may be written.
    pub read_only: bool,
    /// Whether the kernel itself must not write to the device: it was attached only to be read.
    pub locked: bool,
    /// How its filesystem is made and looked after.
    pub tuning: Tuning,
}

/// Show a staged volume to a pod.
#[derive(Debug, Clone)]
pub struct Publish {
    /// The volume.
    pub volume: Volume,
    /// Where it is staged.
    pub staging: VolumePath,
    /// Where the pod sees it.
    pub target: VolumePath,
    /// How it is used.
    pub access: Access,
    /// Whether the pod may not write.
    pub read_only: bool,
    /// Whether no other target may have it (access mode `SINGLE_NODE_SINGLE_WRITER`).
    pub single_target: bool,
}

/// Undo [`Stage`] or [`Publish`] at a path.
#[derive(Debug, Clone)]
pub struct Leave {
    /// The volume.
    pub volume: Volume,
    /// Where it is staged or published.
    pub path: VolumePath,
}

/// Grow a volume's filesystem to its device.
#[derive(Debug, Clone)]
pub struct Expand {
    /// The volume.
    pub volume: Volume,
    /// Where it is staged or published.
    pub path: VolumePath,
    /// The size that the device must have at least; none takes it as it is.
    pub required: Option<Bytes>,
    /// The size that the device may have at most; none allows any.
    pub limit: Option<Bytes>,
    /// Whether it is known to be used as a device.
    pub block: bool,
}

/// How full a volume is.
#[derive(Debug, Clone)]
pub struct Stats {
    /// The volume.
    pub volume: Volume,
    /// Where it is staged or published.
    pub path: VolumePath,
}

/// What is wrong with a volume.
#[derive(Debug, Clone)]
pub struct Health {
    /// The volume.
    pub volume: Volume,
    /// Where it is staged or published, as far as the caller says.
    pub places: Vec<VolumePath>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serial_is_the_passed_one_else_the_id_without_its_prefix() {
        let id: DiskId = "d-bp1d".parse().unwrap();
        assert_eq!(Volume::new(id.clone(), None).serial.as_str(), "bp1d");
        assert!(Volume::new(id.clone(), None).has_serial_of_id());
        let other = Volume::new(id, Serial::new("zz9"));
        assert_eq!(other.serial.as_str(), "zz9");
        assert!(!other.has_serial_of_id());
    }
}
