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

/// By whom a volume is used.
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
    /// Many nodes, one of which may write (`MULTI_NODE_SINGLE_WRITER`).
    MultiNodeSingleWriter,
    /// Many nodes, which may all write (`MULTI_NODE_MULTI_WRITER`).
    MultiNodeMultiWriter,
}

impl AccessMode {
    /// Whether nobody may write.
    #[must_use]
    pub fn is_read_only(self) -> bool {
        match self {
            Self::SingleNodeReader | Self::MultiNodeReader => true,
            Self::SingleNodeWriter
            | Self::SingleNodeSingleWriter
            | Self::SingleNodeMultiWriter
            | Self::MultiNodeSingleWriter
            | Self::MultiNodeMultiWriter => false,
        }
    }

    /// Its name in CSI.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SingleNodeWriter => Mode::SingleNodeWriter,
            Self::SingleNodeReader => Mode::SingleNodeReaderOnly,
            Self::SingleNodeSingleWriter => Mode::SingleNodeSingleWriter,
            Self::SingleNodeMultiWriter => Mode::SingleNodeMultiWriter,
            Self::MultiNodeReader => Mode::MultiNodeReaderOnly,
            Self::MultiNodeSingleWriter => Mode::MultiNodeSingleWriter,
            Self::MultiNodeMultiWriter => Mode::MultiNodeMultiWriter,
        }
        .as_str_name()
    }

    /// Whether it takes a disk that several nodes can hold.
    #[must_use]
    pub fn is_multi_node(self) -> bool {
        match self {
            Self::MultiNodeReader | Self::MultiNodeSingleWriter | Self::MultiNodeMultiWriter => {
                true
            }
            Self::SingleNodeWriter
            | Self::SingleNodeReader
            | Self::SingleNodeSingleWriter
            | Self::SingleNodeMultiWriter => false,
        }
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
    /// CSI has no such mode.
    #[error("access mode {0} is not known")]
    Mode(i32),
    /// A filesystem cannot be on several nodes.
    #[error(
        "access mode {0} is not supported for a mounted filesystem: ext4, ext3, xfs and btrfs break, or \
         show stale data, when several nodes have them mounted; use volumeMode Block, or ReadWriteOnce"
    )]
    SharedFilesystem(&'static str),
    /// The disk cannot be on several nodes.
    #[error(
        "access mode {0} is for several nodes, and the disk is attached to one at a time: set \
         multiAttach: \"true\" in the StorageClass (cloud_essd and cloud_auto), or use ReadWriteOnce or \
         ReadWriteOncePod"
    )]
    OneNode(&'static str),
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
    let mode = access_mode(mode)?;
    // On the cloud's word (ECS, multi-attach): as a device only. For readers too: nothing keeps a
    // writer from joining them, and a filesystem that is not clean is written to by its first reader.
    if mode.is_multi_node() && access != AccessKind::Block {
        return Err(InvalidCapability::SharedFilesystem(mode.as_str()));
    }
    Ok(Capability { access, mode })
}

/// Reads the capabilities that a volume is to have all at once, at least one.
///
/// # Errors
/// When there is none, or one is refused.
pub fn check_all(capabilities: &[VolumeCapability]) -> Result<Vec<Capability>, InvalidCapability> {
    if capabilities.is_empty() {
        return Err(InvalidCapability::NoneGiven);
    }
    capabilities
        .iter()
        .map(|capability| check(Some(capability)))
        .collect()
}

/// Whether a disk can have these capabilities that several nodes can hold at once, or only one.
///
/// # Errors
/// When one is for several nodes, and the disk is not.
pub fn fit(capabilities: &[Capability], shareable: bool) -> Result<(), InvalidCapability> {
    let shared = capabilities.iter().find(|one| one.mode.is_multi_node());
    match shared {
        Some(one) if !shareable => Err(InvalidCapability::OneNode(one.mode.as_str())),
        _ => Ok(()),
    }
}

/// Whether the filesystem of each that is mounted takes the options; `default` is that of those that name none.
///
/// # Errors
/// When one does not, with the reason.
pub fn options_fit(
    capabilities: &[Capability],
    default: Filesystem,
) -> Result<(), InvalidCapability> {
    for (filesystem, flags) in mounts(capabilities, default) {
        flags
            .fit(filesystem, None)
            .map_err(InvalidCapability::Flag)?;
    }
    Ok(())
}

/// The filesystems that they are mounted with, and how.
pub fn mounts(
    capabilities: &[Capability],
    default: Filesystem,
) -> impl Iterator<Item = (Filesystem, &MountFlags)> {
    capabilities
        .iter()
        .filter_map(move |one| match &one.access {
            AccessKind::Block => None,
            AccessKind::Mount { filesystem, flags } => Some((filesystem.unwrap_or(default), flags)),
        })
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
    match Mode::try_from(mode).map_err(|_| InvalidCapability::Mode(mode))? {
        Mode::SingleNodeWriter => Ok(AccessMode::SingleNodeWriter),
        Mode::SingleNodeReaderOnly => Ok(AccessMode::SingleNodeReader),
        Mode::SingleNodeSingleWriter => Ok(AccessMode::SingleNodeSingleWriter),
        Mode::SingleNodeMultiWriter => Ok(AccessMode::SingleNodeMultiWriter),
        Mode::MultiNodeReaderOnly => Ok(AccessMode::MultiNodeReader),
        Mode::MultiNodeSingleWriter => Ok(AccessMode::MultiNodeSingleWriter),
        Mode::MultiNodeMultiWriter => Ok(AccessMode::MultiNodeMultiWriter),
        Mode::Unknown => Err(InvalidCapability::NoAccessMode),
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
    fn every_mode_is_taken_for_a_device_and_those_of_one_node_for_a_filesystem() {
        let block = || Some(AccessType::Block(BlockVolume {}));
        for (mode, read_only, many) in [
            (Mode::SingleNodeWriter, false, false),
            (Mode::SingleNodeReaderOnly, true, false),
            (Mode::SingleNodeSingleWriter, false, false),
            (Mode::SingleNodeMultiWriter, false, false),
            (Mode::MultiNodeReaderOnly, true, true),
            (Mode::MultiNodeSingleWriter, false, true),
            (Mode::MultiNodeMultiWriter, false, true),
        ] {
            let checked = check(Some(&capability(block(), Some(mode)))).unwrap();
            let is = (checked.mode.is_read_only(), checked.mode.is_multi_node());
            assert_eq!(is, (read_only, many), "{mode:?}");
            assert_eq!(checked.mode.as_str(), mode.as_str_name());
            assert!(fit(std::slice::from_ref(&checked), true).is_ok());
            assert_eq!(fit(&[checked], false).is_ok(), !many, "{mode:?}");
            match check(Some(&capability(mount("", &[]), Some(mode)))) {
                Ok(_) => assert!(!many, "{mode:?}"),
                Err(refused) => {
                    let text = refused.to_string();
                    assert!(many && text.contains(mode.as_str_name()), "{text}");
                    assert!(text.contains("volumeMode Block"), "{text}");
                }
            }
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
