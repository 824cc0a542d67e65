//! What a `VolumeCapability` may ask for. Pure; controller and node answer alike.

use super::proto::VolumeCapability;
use super::proto::volume_capability::access_mode::Mode;
use super::proto::volume_capability::{AccessType, MountVolume};
use crate::model::{Filesystem, InvalidMountFlag, MountFlags, UnknownFilesystem};

/// A capability that the driver has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// As a device or as a directory.
    pub access: AccessKind,
    /// By whom.
    pub mode: AccessMode,
}

/// As what a volume is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessKind {
    /// As a device.
    Block,
    /// As a directory.
    Mount {
        /// The filesystem; none leaves it to the volume's context and the default.
        filesystem: Option<Filesystem>,
        /// Options of the mount.
        flags: MountFlags,
    },
}

/// By whom a volume is used: the modes that a disk on one node can have, and readers on many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessMode {
    /// One node, which may write (`SINGLE_NODE_WRITER`).
    SingleNodeWriter,
    /// One node, which only reads (`SINGLE_NODE_READER_ONLY`).
    SingleNodeReader,
    /// One node, one workload on it (`SINGLE_NODE_SINGLE_WRITER`).
    SingleNodeSingleWriter,
    /// One node, any workloads on it (`SINGLE_NODE_MULTI_WRITER`).
    SingleNodeMultiWriter,
    /// Many nodes, which only read (`MULTI_NODE_READER_ONLY`).
    MultiNodeReader,
}

impl AccessMode {
    /// Whether nobody may write.
    #[must_use]
    pub fn is_read_only(self) -> bool {
        match self {
            Self::SingleNodeReader | Self::MultiNodeReader => true,
            Self::SingleNodeWriter | Self::SingleNodeSingleWriter | Self::SingleNodeMultiWriter => {
                false
            }
        }
    }

    /// Whether it takes a disk that several nodes can hold.
    #[must_use]
    pub fn is_multi_node(self) -> bool {
        self == Self::MultiNodeReader
    }
}

/// A capability that the driver does not have, or that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCapability {
    /// There is none.
    #[error("volume_capability is missing")]
    Missing,
    /// There are none.
    #[error("volume_capabilities is empty")]
    NoneGiven,
    /// It is neither.
    #[error("volume_capability has neither block nor mount")]
    NoAccessType,
    /// It has no mode.
    #[error("volume_capability has no access_mode")]
    NoAccessMode,
    /// A disk cannot be used so.
    #[error(
        "access mode {0} is not supported: a disk is written by one node (SINGLE_NODE_*) or only \
         read (MULTI_NODE_READER_ONLY)"
    )]
    Mode(String),
    /// The disk cannot be on several nodes.
    #[error(
        "access mode MULTI_NODE_READER_ONLY is not supported: a disk is attached to one node at a \
         time; use ReadWriteOnce or ReadWriteOncePod"
    )]
    OneNode,
    /// The filesystem is not known.
    #[error("volume_capability.mount.fs_type")]
    Filesystem(#[source] UnknownFilesystem),
    /// A mount flag is no flag.
    #[error("volume_capability.mount.mount_flags")]
    Flag(#[source] InvalidMountFlag),
    /// The node does not advertise `VOLUME_MOUNT_GROUP`.
    #[error("volume_capability.mount.volume_mount_group is not supported")]
    MountGroup,
}

/// Reads a capability.
///
/// # Errors
/// When it is missing, incomplete, or asks for what the driver cannot do.
pub fn check(capability: Option<&VolumeCapability>) -> Result<Capability, InvalidCapability> {
    let capability = capability.ok_or(InvalidCapability::Missing)?;
    let access = match &capability.access_type {
        None => return Err(InvalidCapability::NoAccessType),
        Some(AccessType::Block(_)) => AccessKind::Block,
        Some(AccessType::Mount(mount)) => mount_access(mount)?,
    };
    let mode = capability
        .access_mode
        .as_ref()
        .ok_or(InvalidCapability::NoAccessMode)?
        .mode;
    Ok(Capability {
        access,
        mode: access_mode(mode)?,
    })
}

/// Reads the capabilities that a volume is to have all at once, at least one. Only for disks that one
/// node holds at a time.
///
/// # Errors
/// When there is none, or one is refused.
pub fn check_all(capabilities: &[VolumeCapability]) -> Result<Vec<Capability>, InvalidCapability> {
    if capabilities.is_empty() {
        return Err(InvalidCapability::NoneGiven);
    }
    capabilities
        .iter()
        .map(|capability| check_one_node(Some(capability)))
        .collect()
}

/// Reads a capability of a disk that one node holds at a time.
///
/// # Errors
/// As [`check`], and when it is one for several nodes.
pub fn check_one_node(
    capability: Option<&VolumeCapability>,
) -> Result<Capability, InvalidCapability> {
    match check(capability)? {
        Capability { mode, .. } if mode.is_multi_node() => Err(InvalidCapability::OneNode),
        capability => Ok(capability),
    }
}

fn mount_access(mount: &MountVolume) -> Result<AccessKind, InvalidCapability> {
    if !mount.volume_mount_group.is_empty() {
        return Err(InvalidCapability::MountGroup);
    }
    let filesystem = match mount.fs_type.as_str() {
        "" => None,
        name => Some(name.parse().map_err(InvalidCapability::Filesystem)?),
    };
    let flags = MountFlags::new(mount.mount_flags.iter().cloned());
    Ok(AccessKind::Mount {
        filesystem,
        flags: flags.map_err(InvalidCapability::Flag)?,
    })
}

fn access_mode(mode: i32) -> Result<AccessMode, InvalidCapability> {
    let known = Mode::try_from(mode).map_err(|_| InvalidCapability::Mode(mode.to_string()))?;
    match known {
        Mode::SingleNodeWriter => Ok(AccessMode::SingleNodeWriter),
        Mode::SingleNodeReaderOnly => Ok(AccessMode::SingleNodeReader),
        Mode::SingleNodeSingleWriter => Ok(AccessMode::SingleNodeSingleWriter),
        Mode::SingleNodeMultiWriter => Ok(AccessMode::SingleNodeMultiWriter),
        Mode::MultiNodeReaderOnly => Ok(AccessMode::MultiNodeReader),
        Mode::Unknown => Err(InvalidCapability::NoAccessMode),
        Mode::MultiNodeSingleWriter | Mode::MultiNodeMultiWriter => {
            Err(InvalidCapability::Mode(known.as_str_name().to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::volume_capability::{AccessMode as ProtoMode, BlockVolume};
    use super::*;

    fn capability(access: Option<AccessType>, mode: Option<Mode>) -> VolumeCapability {
        VolumeCapability {
            access_type: access,
            access_mode: mode.map(|mode| ProtoMode { mode: mode.into() }),
        }
    }

    fn mount(fs_type: &str, flags: &[&str]) -> Option<AccessType> {
        Some(AccessType::Mount(MountVolume {
            fs_type: fs_type.to_owned(),
            mount_flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
            volume_mount_group: String::new(),
        }))
    }

    #[test]
    fn modes_that_a_disk_can_have_are_taken_and_others_named() {
        let block = || Some(AccessType::Block(BlockVolume {}));
        for (mode, read_only) in [
            (Mode::SingleNodeWriter, false),
            (Mode::SingleNodeReaderOnly, true),
            (Mode::SingleNodeSingleWriter, false),
            (Mode::SingleNodeMultiWriter, false),
            (Mode::MultiNodeReaderOnly, true),
        ] {
            let checked = check(Some(&capability(block(), Some(mode)))).unwrap();
            assert_eq!(checked.mode.is_read_only(), read_only, "{mode:?}");
        }
        for mode in [Mode::MultiNodeSingleWriter, Mode::MultiNodeMultiWriter] {
            let refused = check(Some(&capability(block(), Some(mode)))).unwrap_err();
            assert!(refused.to_string().contains(mode.as_str_name()));
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let writer = Some(Mode::SingleNodeWriter);
        assert_eq!(check(None), Err(InvalidCapability::Missing));
        assert_eq!(
            check(Some(&capability(None, writer))),
            Err(InvalidCapability::NoAccessType)
        );
        for mode in [None, Some(Mode::Unknown)] {
            assert_eq!(
                check(Some(&capability(mount("", &[]), mode))),
                Err(InvalidCapability::NoAccessMode)
            );
        }
    }

    #[test]
    fn filesystem_and_flags_are_read() {
        let writer = Some(Mode::SingleNodeWriter);
        let checked = check(Some(&capability(mount("XFS", &["noatime"]), writer))).unwrap();
        let AccessKind::Mount { filesystem, flags } = checked.access else {
            panic!("not a mount");
        };
        assert_eq!(filesystem, Some(Filesystem::Xfs));
        assert_eq!(flags.to_string(), "noatime");
        for access in [mount("ntfs", &[]), mount("", &["a,b"])] {
            assert!(check(Some(&capability(access, writer))).is_err());
        }
    }
}
