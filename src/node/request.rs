//! Parsed requests of the Node service.

use super::path::VolumePath;
use crate::model::{Bytes, DiskId, Filesystem, MountFlags, Serial, Tuning};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    pub id: DiskId,
    pub serial: Serial,
}

impl Volume {
    /// Without a serial from the publish context, the serial is the disk ID without `d-` (ECS API, `SerialNumber`).
    pub fn new(id: DiskId, serial: Option<Serial>) -> Self {
        let serial = serial.unwrap_or_else(|| Serial::from_disk_id(&id));
        Self { id, serial }
    }

    /// Whether the serial is derived from the ID. Calls that carry only the ID need a record of another serial.
    pub fn has_default_serial(&self) -> bool {
        self.serial == Serial::from_disk_id(&self.id)
    }
}

/// The access type of CSI's `VolumeCapability`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    Block,
    Mount {
        /// The required filesystem. A blank disk is formatted with it.
        filesystem: Filesystem,
        flags: MountFlags,
    },
}

#[derive(Debug, Clone)]
pub struct StageRequest {
    pub volume: Volume,
    pub staging: VolumePath,
    pub access: Access,
    pub read_only: bool,
    /// Whether the disk is attached read-only, so that the kernel itself must not write to the device.
    pub device_read_only: bool,
    pub tuning: Tuning,
}

#[derive(Debug, Clone)]
pub struct PublishRequest {
    pub volume: Volume,
    pub staging: VolumePath,
    pub target: VolumePath,
    pub access: Access,
    pub read_only: bool,
    /// Whether the volume may have only one target (access mode `SINGLE_NODE_SINGLE_WRITER`).
    pub single_target: bool,
}

/// A volume at one path: to unstage or unpublish it, or to report its statistics.
#[derive(Debug, Clone)]
pub struct PathRequest {
    pub volume: Volume,
    pub path: VolumePath,
}

#[derive(Debug, Clone)]
pub struct ExpandRequest {
    pub volume: Volume,
    /// The staging or target path.
    pub path: VolumePath,
    /// The minimum size of the device. Without it, the filesystem grows to the current size.
    pub required: Option<Bytes>,
    pub limit: Option<Bytes>,
    pub block: bool,
}

#[derive(Debug, Clone)]
pub struct HealthRequest {
    pub volume: Volume,
    /// The staging and target paths that the caller specifies.
    pub paths: Vec<VolumePath>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serial_defaults_to_the_id_without_prefix() {
        let id: DiskId = "d-bp1d".parse().unwrap();
        assert_eq!(Volume::new(id.clone(), None).serial.as_str(), "bp1d");
        assert!(Volume::new(id.clone(), None).has_default_serial());
        let other = Volume::new(id, Serial::new("zz9"));
        assert_eq!(other.serial.as_str(), "zz9");
        assert!(!other.has_default_serial());
    }
}
