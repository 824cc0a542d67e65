//! Size limits of request fields (CSI, "Size Limits"): strings 128 bytes, maps and lists of strings 4 KiB in total,
//! paths `PATH_MAX`. Checked before parsing, so that error messages are short. Fields that identify the resource are
//! recorded in the span of the call.

use std::collections::HashMap;

use super::error::{Error, Result as Parsed};
use crate::csi::proto::volume_capability::AccessType;
use crate::csi::proto::volume_content_source::Type;
use crate::csi::{layer, proto};

pub(super) const MAX_STRING: usize = 128;

/// Maximum bytes of a map or a list of strings: keys and values together.
const MAX_MAP: usize = 4096;

/// Maximum bytes of a path, including the terminating null (Linux, `PATH_MAX`).
const PATH_MAX: usize = 4096;

type Result = Parsed<()>;

pub(crate) trait Limited {
    fn check(&self) -> Result;
}

fn at_most(field: &'static str, size: usize, limit: usize) -> Result {
    if size > limit {
        let why = format!("has {size} bytes; CSI allows at most {limit}");
        return Err(Error::unsupported(field, why));
    }
    Ok(())
}

fn text(field: &'static str, value: &str) -> Result {
    at_most(field, value.len(), MAX_STRING)
}

fn path(field: &'static str, value: &str) -> Result {
    at_most(field, value.len(), PATH_MAX - 1)
}

fn map(field: &'static str, value: &HashMap<String, String>) -> Result {
    let sizes = value.iter().map(|(key, value)| key.len() + value.len());
    at_most(field, sizes.sum(), MAX_MAP)
}

fn list(field: &'static str, value: &[String]) -> Result {
    at_most(field, value.iter().map(String::len).sum(), MAX_MAP)
}

fn texts(field: &'static str, value: &[String]) -> Result {
    list(field, value)?;
    value.iter().try_for_each(|value| text(field, value))
}

fn within<T: Limited>(field: &'static str, value: &Option<T>) -> Result {
    value.iter().try_for_each(|value| inner(field, value))
}

fn each<T: Limited>(field: &'static str, value: &[T]) -> Result {
    let mut values = value.iter().enumerate();
    values.try_for_each(|(n, value)| inner(format_args!("{field}[{n}]"), value))
}

fn inner(outer: impl std::fmt::Display, value: &impl Limited) -> Result {
    value.check().map_err(|error| error.within(outer))
}

/// Each field: its kind, and for one that identifies the resource, the span field in which it is recorded.
macro_rules! limited {
    ($($message:ident { $($kind:ident $field:ident $(=> $span:literal)?),* $(,)? })*) => { $(
        impl Limited for proto::$message {
            fn check(&self) -> Result {
                $(
                    $kind(stringify!($field), &self.$field)?;
                    $(layer::record($span, &self.$field);)?
                )*
                Ok(())
            }
        }
    )* };
}

// `starting_token` is not limited here: a token that is too long is invalid, with its own code.
limited! {
    CreateVolumeRequest {
        text name => "volume.name",
        each volume_capabilities,
        map parameters,
        map secrets,
        within volume_content_source,
        within accessibility_requirements,
        map mutable_parameters,
    }
    DeleteVolumeRequest { text volume_id => "disk.id", map secrets }
    ControllerPublishVolumeRequest {
        text volume_id => "disk.id",
        text node_id => "node.id",
        within volume_capability,
        map secrets,
        map volume_context,
    }
    ControllerUnpublishVolumeRequest { text volume_id => "disk.id", text node_id => "node.id", map secrets }
    ValidateVolumeCapabilitiesRequest {
        text volume_id => "disk.id",
        map volume_context,
        each volume_capabilities,
        map parameters,
        map secrets,
        map mutable_parameters,
    }
    ListVolumesRequest {}
    GetCapacityRequest {
        each volume_capabilities,
        map parameters,
        within accessible_topology,
    }
    CreateSnapshotRequest {
        text source_volume_id => "disk.id",
        text name => "snapshot.name",
        map secrets,
        map parameters,
        within accessibility_requirements,
    }
    DeleteSnapshotRequest { text snapshot_id => "snapshot.id", map secrets }
    ListSnapshotsRequest { text source_volume_id, text snapshot_id, map secrets }
    GetSnapshotRequest { text snapshot_id => "snapshot.id", map secrets }
    ControllerExpandVolumeRequest { text volume_id => "disk.id", map secrets, within volume_capability }
    ControllerGetVolumeRequest { text volume_id => "disk.id" }
    ControllerGetVolumeHealthRequest { text volume_id => "disk.id", map secrets }
    ControllerListVolumeHealthRequest { map secrets }
    ControllerModifyVolumeRequest { text volume_id => "disk.id", map secrets, map mutable_parameters }
    CreateVolumeGroupSnapshotRequest {
        text name => "group.name",
        texts source_volume_ids,
        map secrets,
        map parameters,
    }
    DeleteVolumeGroupSnapshotRequest { text group_snapshot_id => "group.id", texts snapshot_ids, map secrets }
    GetVolumeGroupSnapshotRequest { text group_snapshot_id => "group.id", texts snapshot_ids, map secrets }
    NodeStageVolumeRequest {
        text volume_id => "disk.id",
        map publish_context,
        path staging_target_path => "path",
        within volume_capability,
        map secrets,
        map volume_context,
    }
    NodeUnstageVolumeRequest { text volume_id => "disk.id", path staging_target_path => "path" }
    NodePublishVolumeRequest {
        text volume_id => "disk.id",
        map publish_context,
        path staging_target_path,
        path target_path => "path",
        within volume_capability,
        map secrets,
        map volume_context,
    }
    NodeUnpublishVolumeRequest { text volume_id => "disk.id", path target_path => "path" }
    NodeGetVolumeStatsRequest { text volume_id => "disk.id", path volume_path => "path", path staging_target_path }
    NodeGetVolumeHealthRequest {
        text volume_id => "disk.id",
        path volume_publish_path => "path",
        path staging_target_path,
    }
    NodeExpandVolumeRequest {
        text volume_id => "disk.id",
        path volume_path => "path",
        path staging_target_path,
        within volume_capability,
        map secrets,
    }
    Topology { map segments }
    TopologyRequirement { each requisite, each preferred }
}

impl Limited for proto::VolumeCapability {
    fn check(&self) -> Result {
        match &self.access_type {
            Some(AccessType::Mount(mount)) => {
                text("mount.fs_type", &mount.fs_type)?;
                text("mount.volume_mount_group", &mount.volume_mount_group)?;
                list("mount.mount_flags", &mount.mount_flags)
            }
            Some(AccessType::Block(_)) | None => Ok(()),
        }
    }
}

impl Limited for proto::VolumeContentSource {
    fn check(&self) -> Result {
        match &self.r#type {
            Some(Type::Snapshot(source)) => text("snapshot.snapshot_id", &source.snapshot_id),
            Some(Type::Volume(source)) => text("volume.volume_id", &source.volume_id),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_oversized_field_is_reported_with_its_size_and_the_limit() {
        let request = proto::DeleteVolumeRequest {
            volume_id: "d".repeat(129),
            ..proto::DeleteVolumeRequest::default()
        };
        let refused = request.check().unwrap_err();
        assert_eq!(refused.to_string(), "volume_id has 129 bytes; CSI allows at most 128");
        let request = proto::DeleteVolumeRequest {
            volume_id: "d".repeat(128),
            secrets: [("k".to_owned(), "v".repeat(4095))].into(),
        };
        assert!(request.check().is_ok());
        let request = proto::DeleteVolumeRequest {
            secrets: [("k".to_owned(), "v".repeat(4096))].into(),
            ..request
        };
        let refused = request.check().unwrap_err();
        assert_eq!(refused.to_string(), "secrets has 4097 bytes; CSI allows at most 4096");
    }

    #[test]
    fn a_nested_field_is_named_by_its_path() {
        let topology = proto::Topology {
            segments: [("k".to_owned(), "v".repeat(4096))].into(),
        };
        let request = proto::CreateVolumeRequest {
            accessibility_requirements: Some(proto::TopologyRequirement {
                requisite: vec![proto::Topology::default(), topology],
                preferred: Vec::new(),
            }),
            ..proto::CreateVolumeRequest::default()
        };
        assert_eq!(
            request.check().unwrap_err().to_string(),
            "accessibility_requirements.requisite[1].segments has 4097 bytes; CSI allows at most 4096"
        );
    }

    #[test]
    fn a_path_is_limited_to_path_max() {
        let stage = |length| {
            let request = proto::NodeStageVolumeRequest {
                volume_id: "d-1".to_owned(),
                staging_target_path: "/".repeat(length),
                ..proto::NodeStageVolumeRequest::default()
            };
            request.check()
        };
        assert!(stage(4095).is_ok());
        let refused = stage(4096).unwrap_err();
        assert!(
            refused.to_string().starts_with("staging_target_path has 4096"),
            "{refused}"
        );
    }
}
