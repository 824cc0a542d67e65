//! From the wire to what the node's verbs are asked for. Missing fields are named before anything
//! else is judged; an id that no disk can have names no volume.

use std::collections::HashMap;

use crate::csi::capability::{self, AccessKind, AccessMode, InvalidCapability};
use crate::csi::proto;
use crate::model::{
    Bytes, DiskId, Filesystem, InvalidId, InvalidMountFlag, InvalidTuning, Serial, Tuning,
    UnknownFilesystem, context,
};
use crate::node::{
    Access, Expand, Health, InvalidPath, Leave, Publish, Stage, Stats, Volume, VolumePath,
};

/// A request that cannot be understood, or names nothing that can exist.
#[derive(Debug, thiserror::Error)]
pub(super) enum Invalid {
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("volume_id")]
    NoSuchVolume(#[source] InvalidId),
    /// The path of statistics and growth names where a volume is, so a path that no volume can be
    /// at is one where it is not.
    #[error("volume_path")]
    NoSuchPath(#[source] InvalidPath),
    #[error("{field}")]
    Path {
        field: &'static str,
        #[source]
        source: InvalidPath,
    },
    #[error("volume_capability cannot be met")]
    Capability(#[source] InvalidCapability),
    #[error("volume_context {}", context::FS_TYPE)]
    Filesystem(#[source] UnknownFilesystem),
    #[error("volume_context {0}")]
    Tuning(#[source] InvalidTuning),
    #[error("volume_capability.mount.mount_flags")]
    Flags(#[source] InvalidMountFlag),
    #[error("{field} {key} is {value:?}: allowed are \"true\" and \"false\"")]
    Flag {
        field: &'static str,
        key: &'static str,
        value: String,
    },
    #[error("capacity_range.{0} is negative")]
    Negative(&'static str),
    #[error("capacity_range.limit_bytes is below required_bytes")]
    Limit,
}

type Result<T> = std::result::Result<T, Invalid>;
type Map = HashMap<String, String>;

fn present<'a>(field: &'static str, text: &'a str) -> Result<&'a str> {
    if text.is_empty() {
        return Err(Invalid::Missing(field));
    }
    Ok(text)
}

fn volume(id: &str, publish_context: Option<&Map>) -> Result<Volume> {
    let id: DiskId = id.parse().map_err(Invalid::NoSuchVolume)?;
    let serial = publish_context
        .and_then(|map| context::get(map, context::SERIAL))
        .and_then(Serial::new);
    Ok(Volume::new(id, serial))
}

/// Whether the controller attached the disk only to be read.
fn locked(publish_context: &Map) -> Result<bool> {
    flag(
        "publish_context",
        publish_context,
        context::ATTACHED_READ_ONLY,
    )
}

fn flag(field: &'static str, map: &Map, key: &'static str) -> Result<bool> {
    match context::get(map, key) {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(text) => Err(Invalid::Flag {
            field,
            key,
            value: text.to_owned(),
        }),
    }
}

fn path(field: &'static str, text: &str) -> Result<VolumePath> {
    let path: VolumePath = text
        .parse()
        .map_err(|source| Invalid::Path { field, source })?;
    Ok(path.of(field))
}

/// Where a volume should be.
fn place_of(text: &str) -> Result<VolumePath> {
    let path: VolumePath = text.parse().map_err(Invalid::NoSuchPath)?;
    Ok(path.of("volume_path"))
}

/// How the volume is used, whether read-only, and by whom.
struct Use {
    access: Access,
    read_only: bool,
    mode: AccessMode,
    tuning: Tuning,
}

impl Use {
    /// Whether the filesystem takes its options where it is mounted so.
    fn options_fit(&self, read_only: Option<bool>) -> Result<()> {
        match &self.access {
            Access::Block => Ok(()),
            Access::Mount { filesystem, flags } => {
                flags.fit(*filesystem, read_only).map_err(Invalid::Flags)
            }
        }
    }
}

fn how_used(capability: Option<&proto::VolumeCapability>, volume_context: &Map) -> Result<Use> {
    let capability = capability::check(capability).map_err(Invalid::Capability)?;
    let flagged = flag("volume_context", volume_context, context::READ_ONLY)?;
    let mut read_only = capability.mode.is_read_only() || flagged;
    let tuning = Tuning::of(volume_context).map_err(Invalid::Tuning)?;
    let access = match capability.access {
        AccessKind::Block => Access::Block,
        AccessKind::Mount { filesystem, flags } => {
            read_only |= flags.read_only();
            let filesystem = match filesystem {
                Some(filesystem) => filesystem,
                None => default_filesystem(volume_context)?,
            };
            tuning.mkfs_arguments(filesystem).map_err(Invalid::Tuning)?;
            Access::Mount {
                filesystem,
                flags: flags.and(tuning.mount_options(filesystem)),
            }
        }
    };
    Ok(Use {
        access,
        read_only,
        mode: capability.mode,
        tuning,
    })
}

fn default_filesystem(volume_context: &Map) -> Result<Filesystem> {
    context::get(volume_context, context::FS_TYPE).map_or(Ok(Filesystem::default()), |name| {
        name.parse().map_err(Invalid::Filesystem)
    })
}

pub(super) fn stage(request: &proto::NodeStageVolumeRequest) -> Result<Stage> {
    let id = present("volume_id", &request.volume_id)?;
    let staging = present("staging_target_path", &request.staging_target_path)?;
    let used = how_used(request.volume_capability.as_ref(), &request.volume_context)?;
    let locked = locked(&request.publish_context)?;
    let read_only = used.read_only || locked;
    let volume = volume(id, Some(&request.publish_context))?;
    let staging = path("staging_target_path", staging)?;
    used.options_fit(Some(read_only))?;
    Ok(Stage {
        staging,
        volume,
        access: used.access,
        read_only,
        locked,
        tuning: used.tuning,
    })
}

pub(super) fn publish(request: &proto::NodePublishVolumeRequest) -> Result<Publish> {
    let id = present("volume_id", &request.volume_id)?;
    let target = present("target_path", &request.target_path)?;
    let used = how_used(request.volume_capability.as_ref(), &request.volume_context)?;
    let staging = present("staging_target_path", &request.staging_target_path)?;
    used.options_fit(None)?;
    Ok(Publish {
        staging: path("staging_target_path", staging)?,
        target: path("target_path", target)?,
        volume: volume(id, Some(&request.publish_context))?,
        access: used.access,
        read_only: used.read_only || request.readonly || locked(&request.publish_context)?,
        single_target: used.mode == AccessMode::SingleNodeSingleWriter,
    })
}

pub(super) fn unstage(request: &proto::NodeUnstageVolumeRequest) -> Result<Leave> {
    let id = present("volume_id", &request.volume_id)?;
    let staging = present("staging_target_path", &request.staging_target_path)?;
    Ok(Leave {
        path: path("staging_target_path", staging)?,
        volume: volume(id, None)?,
    })
}

pub(super) fn unpublish(request: &proto::NodeUnpublishVolumeRequest) -> Result<Leave> {
    let id = present("volume_id", &request.volume_id)?;
    let target = present("target_path", &request.target_path)?;
    Ok(Leave {
        path: path("target_path", target)?,
        volume: volume(id, None)?,
    })
}

pub(super) fn stats(request: &proto::NodeGetVolumeStatsRequest) -> Result<Stats> {
    let id = present("volume_id", &request.volume_id)?;
    let place = present("volume_path", &request.volume_path)?;
    Ok(Stats {
        volume: volume(id, None)?,
        path: place_of(place)?,
    })
}

pub(super) fn health(request: &proto::NodeGetVolumeHealthRequest) -> Result<Health> {
    let id = present("volume_id", &request.volume_id)?;
    let places = [
        ("volume_publish_path", &request.volume_publish_path),
        ("staging_target_path", &request.staging_target_path),
    ];
    let given = places.into_iter().filter(|(_, place)| !place.is_empty());
    Ok(Health {
        volume: volume(id, None)?,
        places: given
            .map(|(field, place)| path(field, place))
            .collect::<Result<_>>()?,
    })
}

pub(super) fn expand(request: &proto::NodeExpandVolumeRequest) -> Result<Expand> {
    let id = present("volume_id", &request.volume_id)?;
    let place = present("volume_path", &request.volume_path)?;
    let block = match &request.volume_capability {
        None => false,
        given => {
            let capability = capability::check(given.as_ref()).map_err(Invalid::Capability)?;
            capability.access == AccessKind::Block
        }
    };
    let (required, limit) = match &request.capacity_range {
        None => (None, None),
        Some(range) => bounds(range)?,
    };
    Ok(Expand {
        volume: volume(id, None)?,
        path: place_of(place)?,
        required,
        limit,
        block,
    })
}

fn bounds(range: &proto::CapacityRange) -> Result<(Option<Bytes>, Option<Bytes>)> {
    let negative = |field| move |_| Invalid::Negative(field);
    let required = u64::try_from(range.required_bytes).map_err(negative("required_bytes"))?;
    let limit = u64::try_from(range.limit_bytes).map_err(negative("limit_bytes"))?;
    if limit != 0 && limit < required {
        return Err(Invalid::Limit);
    }
    let given = |bytes: u64| (bytes != 0).then_some(Bytes(bytes));
    Ok((given(required), given(limit)))
}

#[cfg(test)]
mod tests {
    use proto::volume_capability::{AccessMode, AccessType, MountVolume, access_mode::Mode};

    use super::*;

    fn capability(fs_type: &str, mode: Mode) -> Option<proto::VolumeCapability> {
        Some(proto::VolumeCapability {
            access_type: Some(AccessType::Mount(MountVolume {
                fs_type: fs_type.to_owned(),
                ..Default::default()
            })),
            access_mode: Some(AccessMode { mode: mode.into() }),
        })
    }

    fn stage_request(fs_type: &str, context: &[(&str, &str)]) -> proto::NodeStageVolumeRequest {
        proto::NodeStageVolumeRequest {
            volume_id: "d-bp1".to_owned(),
            staging_target_path: "/staging".to_owned(),
            volume_capability: capability(fs_type, Mode::SingleNodeWriter),
            volume_context: context
                .iter()
                .map(|&(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
            ..Default::default()
        }
    }

    #[test]
    fn the_capability_goes_before_the_context_and_that_before_ext4() {
        for (fs_type, context, wanted) in [
            ("xfs", &[("fsType", "btrfs")][..], Filesystem::Xfs),
            ("", &[("fstype", "BTRFS")], Filesystem::Btrfs),
            ("", &[], Filesystem::Ext4),
        ] {
            let staged = stage(&stage_request(fs_type, context)).unwrap();
            let Access::Mount { filesystem, .. } = staged.access else {
                panic!("not a mount");
            };
            assert_eq!(filesystem, wanted);
        }
    }

    #[test]
    fn what_the_class_says_of_filesystems_comes_with_the_context() {
        let tuned = [
            ("fsck", "preen"),
            ("blockSize", "1024"),
            ("discard", "mount"),
        ];
        let staged = stage(&stage_request("ext4", &tuned)).unwrap();
        assert_eq!(staged.tuning.block_size, Some(1024));
        let Access::Mount { flags, .. } = staged.access else {
            panic!("not a mount");
        };
        assert_eq!(flags.to_string(), "discard");
        for (fs_type, key, value) in [("btrfs", "blockSize", "1024"), ("ext4", "fsck", "always")] {
            let refused = stage(&stage_request(fs_type, &[(key, value)])).unwrap_err();
            let told = crate::base::chain::chain(&refused);
            assert!(
                told.starts_with("volume_context") && told.contains(key),
                "{told}"
            );
        }
    }

    #[test]
    fn an_option_that_the_filesystem_does_not_take_is_refused_before_anything_is_done() {
        let with = |fs_type: &str, flag: &str, read_only: &str| {
            let mut request = stage_request(fs_type, &[("readOnly", read_only)]);
            let access = request.volume_capability.as_mut().unwrap();
            let Some(AccessType::Mount(mount)) = &mut access.access_type else {
                panic!("not a mount");
            };
            mount.mount_flags = vec![flag.to_owned()];
            stage(&request).map_err(|error| crate::base::chain::chain(&error))
        };
        assert!(with("ext4", "data=journal", "false").is_ok());
        assert!(with("ext4", "noload", "true").is_ok());
        for (fs_type, flag) in [
            ("xfs", "data=journal"),
            ("ext4", "nobarrier"),
            ("ext4", "noload"),
        ] {
            let told = with(fs_type, flag, "false").unwrap_err();
            assert!(
                told.starts_with("volume_capability.mount.mount_flags: "),
                "{told}"
            );
        }
    }

    #[test]
    fn read_only_comes_from_context_mode_or_flag() {
        assert!(
            !stage(&stage_request("", &[("readOnly", "false")]))
                .unwrap()
                .read_only
        );
        assert!(
            stage(&stage_request("", &[("readOnly", "true")]))
                .unwrap()
                .read_only
        );
        assert!(stage(&stage_request("", &[("readOnly", "yes")])).is_err());
        let mut request = stage_request("", &[]);
        request.volume_capability = capability("", Mode::SingleNodeReaderOnly);
        assert!(stage(&request).unwrap().read_only);
    }

    #[test]
    fn a_disk_that_was_attached_only_to_be_read_is_locked_whatever_the_capability_says() {
        let mut request = stage_request("", &[]);
        let key = context::ATTACHED_READ_ONLY.to_owned();
        request.publish_context = HashMap::from([(key.clone(), "true".to_owned())]);
        let staged = stage(&request).unwrap();
        assert!(staged.read_only && staged.locked);
        let published = publish(&proto::NodePublishVolumeRequest {
            volume_id: "d-bp1".to_owned(),
            staging_target_path: "/staging".to_owned(),
            target_path: "/target".to_owned(),
            volume_capability: capability("", Mode::SingleNodeWriter),
            publish_context: request.publish_context.clone(),
            ..Default::default()
        });
        assert!(published.unwrap().read_only);
        request.publish_context = HashMap::from([(key, "perhaps".to_owned())]);
        let refused = stage(&request).unwrap_err().to_string();
        assert!(refused.contains("publish_context") && refused.contains("perhaps"));
    }

    #[test]
    fn a_missing_field_is_named_even_where_the_id_is_nonsense() {
        let mut request = stage_request("", &[]);
        request.volume_id = "no-disk".to_owned();
        assert!(matches!(stage(&request), Err(Invalid::NoSuchVolume(_))));
        request.volume_capability = None;
        assert_eq!(
            crate::base::chain::chain(&stage(&request).unwrap_err()),
            "volume_capability cannot be met: volume_capability is missing"
        );
    }
}
