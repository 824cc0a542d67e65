//! Requests of the Node service. Missing fields are `INVALID_ARGUMENT` even if the volume ID is invalid, which is
//! `NOT_FOUND`.

use std::collections::HashMap;

use super::capability::{self, Access as Kind};
use super::error::{Error, Result};
use super::field;
use crate::csi::proto;
use crate::csi::proto::volume_capability::access_mode::Mode;
use crate::model::{DiskId, Serial, Tuning, context as keys};
use crate::node::{
    Access, ExpandRequest, HealthRequest, InvalidPath, PathRequest, PublishRequest, StageRequest, Volume, VolumePath,
};

type Map = HashMap<String, String>;

fn volume(id: &str, publish_context: Option<&Map>) -> Result<Volume> {
    let id: DiskId = field::id("volume_id", id)?;
    let serial = publish_context.and_then(|map| keys::get(map, keys::SERIAL));
    Ok(Volume::new(id, serial.and_then(Serial::new)))
}

fn attached_read_only(publish_context: &Map) -> Result<bool> {
    let flag = field::flag("publish_context", publish_context, keys::ATTACHED_READ_ONLY);
    Ok(flag?.unwrap_or(false))
}

fn path(field: &'static str, text: &str) -> Result<VolumePath> {
    let path = text.parse::<VolumePath>();
    let path = path.map_err(|invalid| Error::malformed(field, &invalid))?;
    Ok(path.with_field(field))
}

/// The path of a published volume. A path that no volume can have is `NOT_FOUND`.
fn volume_path(text: &str) -> Result<VolumePath> {
    const FIELD: &str = "volume_path";
    let not_found = |invalid: InvalidPath| Error::not_found(FIELD, &invalid);
    let path: VolumePath = text.parse().map_err(not_found)?;
    Ok(path.with_field(FIELD))
}

struct VolumeUse {
    access: Access,
    read_only: bool,
    mode: Mode,
    tuning: Tuning,
}

impl VolumeUse {
    fn parse(capability: Option<&proto::VolumeCapability>, volume_context: &Map) -> Result<Self> {
        let capability = capability::required(capability)?;
        let flagged = field::flag("volume_context", volume_context, keys::READ_ONLY)?;
        let mut read_only = capability.is_read_only() || flagged == Some(true);
        let tuning = field::tuning(volume_context)?;
        let access = match capability.access {
            Kind::Block => Access::Block,
            Kind::Mount { filesystem, flags } => {
                read_only |= flags.read_only();
                let filesystem = match filesystem {
                    Some(filesystem) => filesystem,
                    None => field::context_filesystem(volume_context)?.unwrap_or_default(),
                };
                let made = tuning.mkfs_arguments(filesystem, "");
                made.map_err(field::invalid_tuning("volume_context"))?;
                Access::Mount {
                    filesystem,
                    flags: flags.and(tuning.mount_options(filesystem)),
                }
            }
        };
        Ok(Self {
            access,
            read_only,
            mode: capability.mode,
            tuning,
        })
    }
}

pub(crate) fn stage(message: &proto::NodeStageVolumeRequest) -> Result<StageRequest> {
    field::required("volume_id", &message.volume_id)?;
    let staging = field::required("staging_target_path", &message.staging_target_path)?;
    let used = VolumeUse::parse(message.volume_capability.as_ref(), &message.volume_context)?;
    let device_read_only = attached_read_only(&message.publish_context)?;
    let read_only = used.read_only || device_read_only;
    let volume = volume(&message.volume_id, Some(&message.publish_context))?;
    let staging = path("staging_target_path", staging)?;
    if let Access::Mount { flags, .. } = &used.access
        && !read_only
    {
        let checked = flags.check_writable();
        checked.map_err(|invalid| capability::invalid_flag("volume_capability", &invalid))?;
    }
    Ok(StageRequest {
        volume,
        staging,
        access: used.access,
        read_only,
        device_read_only,
        tuning: used.tuning,
    })
}

pub(crate) fn publish(message: &proto::NodePublishVolumeRequest) -> Result<PublishRequest> {
    field::required("volume_id", &message.volume_id)?;
    let target = field::required("target_path", &message.target_path)?;
    let used = VolumeUse::parse(message.volume_capability.as_ref(), &message.volume_context)?;
    let staging = field::required("staging_target_path", &message.staging_target_path)?;
    Ok(PublishRequest {
        staging: path("staging_target_path", staging)?,
        target: path("target_path", target)?,
        volume: volume(&message.volume_id, Some(&message.publish_context))?,
        access: used.access,
        read_only: used.read_only || message.readonly || attached_read_only(&message.publish_context)?,
        single_target: used.mode == Mode::SingleNodeSingleWriter,
    })
}

pub(crate) fn unstage(message: &proto::NodeUnstageVolumeRequest) -> Result<PathRequest> {
    unmount(&message.volume_id, "staging_target_path", &message.staging_target_path)
}

pub(crate) fn unpublish(message: &proto::NodeUnpublishVolumeRequest) -> Result<PathRequest> {
    unmount(&message.volume_id, "target_path", &message.target_path)
}

fn unmount(volume_id: &str, field: &'static str, text: &str) -> Result<PathRequest> {
    field::required("volume_id", volume_id)?;
    Ok(PathRequest {
        path: path(field, field::required(field, text)?)?,
        volume: volume(volume_id, None)?,
    })
}

pub(crate) fn stats(message: &proto::NodeGetVolumeStatsRequest) -> Result<PathRequest> {
    field::required("volume_id", &message.volume_id)?;
    let text = field::required("volume_path", &message.volume_path)?;
    Ok(PathRequest {
        volume: volume(&message.volume_id, None)?,
        path: volume_path(text)?,
    })
}

pub(crate) fn health(message: &proto::NodeGetVolumeHealthRequest) -> Result<HealthRequest> {
    let volume = volume(&message.volume_id, None)?;
    let paths = [
        ("volume_publish_path", &message.volume_publish_path),
        ("staging_target_path", &message.staging_target_path),
    ];
    let given = paths.into_iter().filter(|(_, path)| !path.is_empty());
    let paths = given.map(|(field, text)| path(field, text));
    Ok(HealthRequest {
        volume,
        paths: paths.collect::<Result<_>>()?,
    })
}

pub(crate) fn expand(message: &proto::NodeExpandVolumeRequest) -> Result<ExpandRequest> {
    field::required("volume_id", &message.volume_id)?;
    let text = field::required("volume_path", &message.volume_path)?;
    let block = capability::is_block(message.volume_capability.as_ref())?;
    let size = field::size_range(message.capacity_range.as_ref())?;
    Ok(ExpandRequest {
        volume: volume(&message.volume_id, None)?,
        path: volume_path(text)?,
        required: size.required,
        limit: size.limit,
        block,
    })
}

#[cfg(test)]
mod tests {
    use proto::volume_capability::{AccessMode, AccessType, MountVolume, access_mode::Mode};

    use super::*;
    use crate::model::{Failure, Filesystem};

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
    fn the_filesystem_comes_from_capability_context_or_default() {
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
    fn filesystem_parameters_come_from_the_volume_context() {
        let tuned = [("fsck", "preen"), ("blockSize", "1024"), ("discard", "mount")];
        let staged = stage(&stage_request("ext4", &tuned)).unwrap();
        assert_eq!(staged.tuning.block_size, Some(1024));
        let Access::Mount { flags, .. } = staged.access else {
            panic!("not a mount");
        };
        assert_eq!(flags.to_string(), "discard");
        for (fs_type, key, value) in [("btrfs", "blockSize", "1024"), ("ext4", "fsck", "always")] {
            let refused = stage(&stage_request(fs_type, &[(key, value)])).unwrap_err();
            let message = refused.to_string();
            assert!(
                message.starts_with("volume_context") && message.contains(key),
                "{message}"
            );
        }
    }

    #[test]
    fn a_denied_mount_option_is_rejected() {
        let with = |flag: &str, read_only: &str| {
            let mut request = stage_request("ext4", &[("readOnly", read_only)]);
            let access = request.volume_capability.as_mut().unwrap();
            let Some(AccessType::Mount(mount)) = &mut access.access_type else {
                panic!("not a mount");
            };
            mount.mount_flags = vec![flag.to_owned()];
            stage(&request).map_err(|error| error.to_string())
        };
        assert!(with("data=journal", "false").is_ok());
        assert!(with("noload", "true").is_ok());
        for flag in ["nobarrier", "noload", "ro,rw"] {
            let message = with(flag, "false").unwrap_err();
            assert!(
                message.starts_with("volume_capability.mount.mount_flags: "),
                "{message}"
            );
        }
    }

    #[test]
    fn read_only_comes_from_context_or_access_mode() {
        assert!(!stage(&stage_request("", &[("readOnly", "false")])).unwrap().read_only);
        assert!(stage(&stage_request("", &[("readOnly", "true")])).unwrap().read_only);
        assert!(stage(&stage_request("", &[("readOnly", "yes")])).is_err());
        let mut request = stage_request("", &[]);
        request.volume_capability = capability("", Mode::SingleNodeReaderOnly);
        assert!(stage(&request).unwrap().read_only);
    }

    #[test]
    fn a_disk_that_is_attached_read_only_is_staged_read_only_for_any_capability() {
        let mut request = stage_request("", &[]);
        let key = keys::ATTACHED_READ_ONLY.to_owned();
        request.publish_context = HashMap::from([(key.clone(), "true".to_owned())]);
        let staged = stage(&request).unwrap();
        assert!(staged.read_only && staged.device_read_only);
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
    fn a_missing_field_is_reported_before_an_invalid_id() {
        let mut request = stage_request("", &[]);
        request.volume_id = "no-disk".to_owned();
        assert_eq!(stage(&request).unwrap_err().failure, Failure::NoSuchResource);
        request.volume_capability = None;
        assert_eq!(
            stage(&request).unwrap_err().to_string(),
            "volume_capability is required"
        );
    }

    #[test]
    fn every_rpc_reports_its_missing_field() {
        fn with<T: Default>(set: impl FnOnce(&mut T)) -> T {
            let mut request = T::default();
            set(&mut request);
            request
        }
        let id = "d-bp1".to_owned();
        let staged = with(|request: &mut proto::NodeStageVolumeRequest| request.volume_id.clone_from(&id));
        let mut published = with(|request: &mut proto::NodePublishVolumeRequest| request.volume_id.clone_from(&id));
        let untargeted = publish(&published).err();
        published.target_path = "/t".to_owned();
        let unpublished = with(|request: &mut proto::NodeUnpublishVolumeRequest| request.volume_id.clone_from(&id));
        let expanded = with(|request: &mut proto::NodeExpandVolumeRequest| request.volume_id.clone_from(&id));
        for (error, missing) in [
            (stage(&Default::default()).err(), "volume_id"),
            (stage(&staged).err(), "staging_target_path"),
            (untargeted, "target_path"),
            (publish(&published).err(), "volume_capability"),
            (unstage(&Default::default()).err(), "volume_id"),
            (unpublish(&unpublished).err(), "target_path"),
            (stats(&Default::default()).err(), "volume_id"),
            (expand(&expanded).err(), "volume_path"),
        ] {
            assert_eq!(error, Some(Error::missing(missing)));
        }
    }

    #[test]
    fn an_invalid_volume_id_or_path_is_not_found() {
        for (id, path) in [("some-id", "some/path"), ("d-bp1", "some/path")] {
            let stats = super::stats(&proto::NodeGetVolumeStatsRequest {
                volume_id: id.to_owned(),
                volume_path: path.to_owned(),
                ..Default::default()
            });
            assert_eq!(stats.unwrap_err().failure, Failure::NoSuchResource);
            let expand = super::expand(&proto::NodeExpandVolumeRequest {
                volume_id: id.to_owned(),
                volume_path: path.to_owned(),
                ..Default::default()
            });
            assert_eq!(expand.unwrap_err().failure, Failure::NoSuchResource);
        }
    }
}
