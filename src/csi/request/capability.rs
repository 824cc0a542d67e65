//! What a `VolumeCapability` asks for: one parser for controller and node.

use super::Result;
use super::error::Error;
use super::field::filesystem;
use crate::csi::proto::VolumeCapability;
use crate::csi::proto::volume_capability::access_mode::Mode;
use crate::csi::proto::volume_capability::{AccessType, MountVolume};
use crate::disk::Share;
use crate::model::{Filesystem, InvalidMountFlag, MountFlags};

/// A capability that the driver has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Capability {
    /// Its path in the request.
    field: String,
    pub(super) access: Access,
    /// Never `UNKNOWN`.
    pub(super) mode: Mode,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Access {
    Block,
    Mount {
        /// None leaves it to the volume's context and the default.
        filesystem: Option<Filesystem>,
        flags: MountFlags,
    },
}

impl Capability {
    pub(super) fn is_read_only(&self) -> bool {
        matches!(
            self.mode,
            Mode::SingleNodeReaderOnly | Mode::MultiNodeReaderOnly
        )
    }

    /// How many nodes use the volume at once.
    pub(super) fn share(&self) -> Share {
        match self.mode {
            Mode::Unknown
            | Mode::SingleNodeWriter
            | Mode::SingleNodeReaderOnly
            | Mode::SingleNodeSingleWriter
            | Mode::SingleNodeMultiWriter => Share::One,
            Mode::MultiNodeSingleWriter => Share::OneWriter,
            Mode::MultiNodeReaderOnly | Mode::MultiNodeMultiWriter => Share::Many,
        }
    }

    /// The filesystem that it is mounted with, which has its mount flags; `default` is the one where it names none.
    pub(super) fn mounted_with(&self, default: Filesystem) -> Result<Option<Filesystem>> {
        match &self.access {
            Access::Block => Ok(None),
            Access::Mount { filesystem, flags } => {
                let filesystem = filesystem.unwrap_or(default);
                flags_fit(&self.field, flags, filesystem, None)?;
                Ok(Some(filesystem))
            }
        }
    }
}

/// Whether this filesystem has these mount flags of a capability. `read_only` is how it will be mounted, where that is
/// known.
pub(super) fn flags_fit(
    field: &str,
    flags: &MountFlags,
    filesystem: Filesystem,
    read_only: Option<bool>,
) -> Result<()> {
    let fit = flags.fit(filesystem, read_only);
    fit.map_err(|invalid| invalid_flag(field, &invalid))
}

/// The required capability of a request.
pub(super) fn required(given: Option<&VolumeCapability>) -> Result<Capability> {
    const FIELD: &str = "volume_capability";
    let given = given.ok_or(Error::Missing(FIELD.into()))?;
    parse(FIELD.to_owned(), given)
}

/// Whether an optional capability is for a device.
pub(super) fn is_block(given: Option<&VolumeCapability>) -> Result<bool> {
    let capability = given.map(|given| required(Some(given))).transpose()?;
    Ok(capability.is_some_and(|capability| capability.access == Access::Block))
}

/// The capabilities that a volume must have all at once.
pub(super) fn all(given: &[VolumeCapability]) -> Result<Vec<Capability>> {
    let given = given.iter().enumerate();
    let parse = |(n, one)| parse(format!("volume_capabilities[{n}]"), one);
    given.map(parse).collect()
}

/// The same, at least one.
pub(super) fn at_least_one(given: &[VolumeCapability]) -> Result<Vec<Capability>> {
    if given.is_empty() {
        return Err(Error::Missing("volume_capabilities".into()));
    }
    all(given)
}

/// Whether a disk can have these capabilities that several nodes can hold at once, or only one.
pub(crate) fn fit(capabilities: &[Capability], shareable: bool) -> Result<()> {
    let shared = capabilities.iter().find(|one| one.share() != Share::One);
    match shared {
        Some(one) if !shareable => Err(unsupported_mode(
            &one.field,
            one.mode,
            "is for several nodes, and the disk is attached to one at a time: set multiAttach: \"true\" in the \
             StorageClass (cloud_essd and cloud_auto), or use ReadWriteOnce or ReadWriteOncePod",
        )),
        _ => Ok(()),
    }
}

fn parse(field: String, given: &VolumeCapability) -> Result<Capability> {
    let access = match &given.access_type {
        None => return Err(Error::unsupported(field, "has neither block nor mount")),
        Some(AccessType::Block(_)) => Access::Block,
        Some(AccessType::Mount(mount)) => mounted(&field, mount)?,
    };
    let mode_field = || format!("{field}.access_mode");
    let mode = given.access_mode.as_ref().map_or(0, |mode| mode.mode);
    let mode = match Mode::try_from(mode) {
        Ok(Mode::Unknown) => return Err(Error::Missing(mode_field().into())),
        Ok(mode) => mode,
        Err(_) => {
            let allowed = "a mode of CSI 1.13";
            return Err(Error::value(mode_field(), &mode.to_string(), allowed));
        }
    };
    let capability = Capability {
        field,
        access,
        mode,
    };
    // On the cloud's word (ECS, multi-attach): as a device only. For readers too: nothing keeps a
    // writer from joining them, and a filesystem that is not clean is written to by its first reader.
    if capability.share() != Share::One && capability.access != Access::Block {
        return Err(unsupported_mode(
            &capability.field,
            mode,
            "is not supported for a mounted filesystem: ext4, ext3, xfs and btrfs break, or show stale data, when \
             several nodes have them mounted; use volumeMode Block, or ReadWriteOnce",
        ));
    }
    Ok(capability)
}

fn mounted(field: &str, mount: &MountVolume) -> Result<Access> {
    if !mount.volume_mount_group.is_empty() {
        // The node does not advertise `VOLUME_MOUNT_GROUP`.
        let field = format!("{field}.mount.volume_mount_group");
        return Err(Error::unsupported(field, "is not supported"));
    }
    let named = Some(mount.fs_type.as_str()).filter(|name| !name.is_empty());
    let filesystem = named.map(|name| filesystem(format!("{field}.mount.fs_type"), name));
    let flags = MountFlags::new(mount.mount_flags.iter().cloned());
    Ok(Access::Mount {
        filesystem: filesystem.transpose()?,
        flags: flags.map_err(|invalid| invalid_flag(field, &invalid))?,
    })
}

fn invalid_flag(field: &str, invalid: &InvalidMountFlag) -> Error {
    Error::malformed(format!("{field}.mount.mount_flags"), invalid)
}

fn unsupported_mode(field: &str, mode: Mode, why: &str) -> Error {
    let field = format!("{field}.access_mode");
    Error::unsupported(field, format!("{} {why}", mode.as_str_name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csi::proto::volume_capability::{AccessMode as ProtoMode, BlockVolume};

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
            let checked = required(Some(&capability(block(), Some(mode)))).unwrap();
            let is = (checked.is_read_only(), checked.share() != Share::One);
            assert_eq!(is, (read_only, many), "{mode:?}");
            assert!(fit(std::slice::from_ref(&checked), true).is_ok());
            assert_eq!(fit(&[checked], false).is_ok(), !many, "{mode:?}");
            match required(Some(&capability(mount("", &[]), Some(mode)))) {
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
    fn what_is_missing_is_named_by_its_path() {
        let writer = Some(Mode::SingleNodeWriter);
        let refused = |given: Option<&VolumeCapability>| required(given).unwrap_err().to_string();
        assert_eq!(refused(None), "volume_capability is required");
        assert_eq!(
            refused(Some(&capability(None, writer))),
            "volume_capability has neither block nor mount"
        );
        for mode in [None, Some(Mode::Unknown)] {
            let capability = capability(mount("", &[]), mode);
            assert_eq!(
                refused(Some(&capability)),
                "volume_capability.access_mode is required"
            );
            let fine = VolumeCapability {
                access_mode: Some(ProtoMode {
                    mode: Mode::SingleNodeWriter.into(),
                }),
                ..capability.clone()
            };
            assert_eq!(
                at_least_one(&[fine, capability]).unwrap_err().to_string(),
                "volume_capabilities[1].access_mode is required"
            );
        }
    }

    #[test]
    fn filesystem_and_flags_are_read() {
        let writer = Some(Mode::SingleNodeWriter);
        let checked = required(Some(&capability(mount("XFS", &["noatime"]), writer))).unwrap();
        let Access::Mount { filesystem, flags } = checked.access else {
            panic!("not a mount");
        };
        assert_eq!(filesystem, Some(Filesystem::Xfs));
        assert_eq!(flags.to_string(), "noatime");
        for access in [mount("ntfs", &[]), mount("", &["a,b"])] {
            assert!(required(Some(&capability(access, writer))).is_err());
        }
    }
}
