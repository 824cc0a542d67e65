use super::error::{Error, Result};
use super::field::filesystem;
use crate::csi::proto::VolumeCapability;
use crate::csi::proto::volume_capability::access_mode::Mode;
use crate::csi::proto::volume_capability::{AccessType, MountVolume};
use crate::disk::NodeAccess;
use crate::model::{Filesystem, InvalidMountFlag, MountFlags};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Capability {
    field: String,
    pub(super) access: Access,
    /// Never `UNKNOWN`.
    pub(super) mode: Mode,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Access {
    Block,
    Mount {
        /// `None`: from the volume context, or the default.
        filesystem: Option<Filesystem>,
        flags: MountFlags,
    },
}

impl Capability {
    pub(super) fn is_read_only(&self) -> bool {
        matches!(self.mode, Mode::SingleNodeReaderOnly | Mode::MultiNodeReaderOnly)
    }

    pub(super) fn node_access(&self) -> NodeAccess {
        match self.mode {
            Mode::Unknown
            | Mode::SingleNodeWriter
            | Mode::SingleNodeReaderOnly
            | Mode::SingleNodeSingleWriter
            | Mode::SingleNodeMultiWriter => NodeAccess::SingleNode,
            Mode::MultiNodeSingleWriter => NodeAccess::MultiNodeSingleWriter,
            Mode::MultiNodeReaderOnly if self.access != Access::Block => NodeAccess::MultiNodeReaders,
            Mode::MultiNodeReaderOnly | Mode::MultiNodeMultiWriter => NodeAccess::MultiNode,
        }
    }

    /// The filesystem; `default` if the capability names none.
    pub(super) fn mounted_with(&self, default: Filesystem) -> Option<Filesystem> {
        match &self.access {
            Access::Block => None,
            Access::Mount { filesystem, .. } => Some(filesystem.unwrap_or(default)),
        }
    }
}

pub(super) fn required(given: Option<&VolumeCapability>) -> Result<Capability> {
    const FIELD: &str = "volume_capability";
    let given = given.ok_or(Error::missing(FIELD))?;
    parse(FIELD.to_owned(), given)
}

pub(super) fn is_block(given: Option<&VolumeCapability>) -> Result<bool> {
    let capability = given.map(|given| required(Some(given))).transpose()?;
    Ok(capability.is_some_and(|capability| capability.access == Access::Block))
}

pub(super) fn all(given: &[VolumeCapability]) -> Result<Vec<Capability>> {
    let given = given.iter().enumerate();
    let parse = |(n, capability)| parse(format!("volume_capabilities[{n}]"), capability);
    given.map(parse).collect()
}

pub(super) fn at_least_one(given: &[VolumeCapability]) -> Result<Vec<Capability>> {
    if given.is_empty() {
        return Err(Error::missing("volume_capabilities"));
    }
    all(given)
}

/// Whether several nodes read a filesystem with these capabilities, which excludes all other modes.
pub(super) fn for_readers_only(capabilities: &[Capability]) -> Result<bool> {
    let is_reader = |one: &&Capability| one.node_access() == NodeAccess::MultiNodeReaders;
    let Some(reader) = capabilities.iter().find(is_reader) else {
        return Ok(false);
    };
    if capabilities.iter().all(|one| is_reader(&one)) {
        return Ok(true);
    }
    let why = "of a filesystem excludes other access modes: a writer would change it for its readers";
    Err(unsupported_mode(&reader.field, reader.mode, why))
}

/// Checks the capabilities against a disk that can be attached to several nodes (`shareable`) or to one.
pub(crate) fn fit(capabilities: &[Capability], shareable: bool) -> Result<()> {
    let shared = capabilities.iter().find(|c| c.node_access() != NodeAccess::SingleNode);
    match shared {
        Some(capability) if !shareable => Err(unsupported_mode(
            &capability.field,
            capability.mode,
            "needs several nodes, but the disk can be attached to only one: set multiAttach: \"true\" in the \
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
        Ok(Mode::Unknown) => return Err(Error::missing(mode_field())),
        Ok(mode) => mode,
        Err(_) => {
            let allowed = "a mode of CSI 1.13";
            return Err(Error::value(mode_field(), &mode.to_string(), allowed));
        }
    };
    let capability = Capability { field, access, mode };
    // Several nodes may only read a filesystem: their devices are read-only, so that no mount replays its journal.
    let is_shareable = matches!(
        capability.node_access(),
        NodeAccess::SingleNode | NodeAccess::MultiNodeReaders
    );
    if !is_shareable && capability.access != Access::Block {
        return Err(unsupported_mode(
            &capability.field,
            mode,
            "is not supported for filesystems: ext4, ext3, xfs and btrfs corrupt data if several nodes write to them; use \
             volumeMode Block, ReadWriteOnce, or ReadOnlyMany for the content of a snapshot",
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

pub(super) fn invalid_flag(field: &str, invalid: &InvalidMountFlag) -> Error {
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
    fn block_volumes_support_every_mode_and_filesystems_one_node_or_readers() {
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
            let is = (checked.is_read_only(), checked.node_access() != NodeAccess::SingleNode);
            assert_eq!(is, (read_only, many), "{mode:?}");
            assert!(fit(std::slice::from_ref(&checked), true).is_ok());
            assert_eq!(fit(&[checked], false).is_ok(), !many, "{mode:?}");
            match required(Some(&capability(mount("", &[]), Some(mode)))) {
                Ok(mounted) => assert_eq!(many, for_readers_only(&[mounted]).unwrap(), "{mode:?}"),
                Err(refused) => {
                    let text = refused.to_string();
                    assert!(many && text.contains(mode.as_str_name()), "{text}");
                    assert!(text.contains("volumeMode Block"), "{text}");
                }
            }
        }
    }

    #[test]
    fn a_missing_field_is_named_by_its_path() {
        let writer = Some(Mode::SingleNodeWriter);
        let refused = |given: Option<&VolumeCapability>| required(given).unwrap_err().to_string();
        assert_eq!(refused(None), "volume_capability is required");
        assert_eq!(
            refused(Some(&capability(None, writer))),
            "volume_capability has neither block nor mount"
        );
        for mode in [None, Some(Mode::Unknown)] {
            let capability = capability(mount("", &[]), mode);
            assert_eq!(refused(Some(&capability)), "volume_capability.access_mode is required");
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
    fn filesystem_and_flags_are_parsed() {
        let writer = Some(Mode::SingleNodeWriter);
        let checked = required(Some(&capability(mount("XFS", &["noatime"]), writer))).unwrap();
        let Access::Mount { filesystem, flags } = checked.access else {
            panic!("not a mount");
        };
        assert_eq!(filesystem, Some(Filesystem::Xfs));
        assert_eq!(flags.to_string(), "noatime");
        for access in [mount("ntfs", &[]), mount("", &["a,bind"])] {
            assert!(required(Some(&capability(access, writer))).is_err());
        }
    }
}
