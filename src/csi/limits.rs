//! How large the fields of a request may be (CSI, "Size Limits"): a text 128 bytes, a map or a list of
//! texts 4 KiB in all, a path what Linux allows. Checked before anything is read, so that what a refusal repeats is short.

use std::collections::HashMap;

use tonic::{Request, Status};

use super::proto;
use super::proto::volume_capability::AccessType;
use super::proto::volume_content_source::Type;

/// Longest text, in bytes.
pub(crate) const TEXT: usize = 128;

/// Largest map, and list of texts, in bytes: keys and values together.
const WHOLE: usize = 4096;

/// Longest path, in bytes, its end included (Linux, `PATH_MAX`).
const PATH: usize = 4096;

/// A message whose fields have limits.
pub(crate) trait Limited {
    /// Refuses the first field that is too large, by name.
    fn check(&self) -> Result<(), Status>;
}

/// The message of the request, if all of its fields fit.
///
/// # Errors
/// `INVALID_ARGUMENT` naming the field that does not, its size and the limit.
pub(crate) fn fit<T: Limited>(request: Request<T>) -> Result<T, Status> {
    let message = request.into_inner();
    message.check()?;
    Ok(message)
}

fn at_most(field: &str, size: usize, most: usize) -> Result<(), Status> {
    if size > most {
        return Err(Status::invalid_argument(format!(
            "{field} has {size} bytes; CSI allows at most {most}"
        )));
    }
    Ok(())
}

fn text(field: &str, value: &str) -> Result<(), Status> {
    at_most(field, value.len(), TEXT)
}

fn path(field: &str, value: &str) -> Result<(), Status> {
    at_most(field, value.len(), PATH - 1)
}

fn map(field: &str, value: &HashMap<String, String>) -> Result<(), Status> {
    let size = value
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    at_most(field, size, WHOLE)
}

fn list(field: &str, value: &[String]) -> Result<(), Status> {
    at_most(field, value.iter().map(String::len).sum(), WHOLE)
}

fn texts(field: &str, value: &[String]) -> Result<(), Status> {
    list(field, value)?;
    value.iter().try_for_each(|value| text(field, value))
}

fn within<'a, T: Limited + 'a>(
    _: &str,
    value: impl IntoIterator<Item = &'a T>,
) -> Result<(), Status> {
    value.into_iter().try_for_each(Limited::check)
}

macro_rules! limited {
    ($($message:ident { $($kind:ident $field:ident),* $(,)? })*) => { $(
        impl Limited for proto::$message {
            fn check(&self) -> Result<(), Status> {
                $($kind(stringify!($field), &self.$field)?;)*
                Ok(())
            }
        }
    )* };
}

// A list goes on at a token: one that is too long is not ours, which has a code of its own.
limited! {
    CreateVolumeRequest {
        text name,
        within volume_capabilities,
        map parameters,
        map secrets,
        within volume_content_source,
        within accessibility_requirements,
        map mutable_parameters,
    }
    DeleteVolumeRequest { text volume_id, map secrets }
    ControllerPublishVolumeRequest {
        text volume_id,
        text node_id,
        within volume_capability,
        map secrets,
        map volume_context,
    }
    ControllerUnpublishVolumeRequest { text volume_id, text node_id, map secrets }
    ValidateVolumeCapabilitiesRequest {
        text volume_id,
        map volume_context,
        within volume_capabilities,
        map parameters,
        map secrets,
        map mutable_parameters,
    }
    ListVolumesRequest {}
    GetCapacityRequest {
        within volume_capabilities,
        map parameters,
        within accessible_topology,
    }
    CreateSnapshotRequest {
        text source_volume_id,
        text name,
        map secrets,
        map parameters,
        within accessibility_requirements,
    }
    DeleteSnapshotRequest { text snapshot_id, map secrets }
    ListSnapshotsRequest { text source_volume_id, text snapshot_id, map secrets }
    GetSnapshotRequest { text snapshot_id, map secrets }
    ControllerExpandVolumeRequest { text volume_id, map secrets, within volume_capability }
    ControllerGetVolumeRequest { text volume_id }
    ControllerGetVolumeHealthRequest { text volume_id, map secrets }
    ControllerListVolumeHealthRequest { map secrets }
    ControllerModifyVolumeRequest { text volume_id, map secrets, map mutable_parameters }
    CreateVolumeGroupSnapshotRequest {
        text name,
        texts source_volume_ids,
        map secrets,
        map parameters,
    }
    DeleteVolumeGroupSnapshotRequest { text group_snapshot_id, texts snapshot_ids, map secrets }
    GetVolumeGroupSnapshotRequest { text group_snapshot_id, texts snapshot_ids, map secrets }
    NodeStageVolumeRequest {
        text volume_id,
        map publish_context,
        path staging_target_path,
        within volume_capability,
        map secrets,
        map volume_context,
    }
    NodeUnstageVolumeRequest { text volume_id, path staging_target_path }
    NodePublishVolumeRequest {
        text volume_id,
        map publish_context,
        path staging_target_path,
        path target_path,
        within volume_capability,
        map secrets,
        map volume_context,
    }
    NodeUnpublishVolumeRequest { text volume_id, path target_path }
    NodeGetVolumeStatsRequest { text volume_id, path volume_path, path staging_target_path }
    NodeGetVolumeHealthRequest {
        text volume_id,
        path volume_publish_path,
        path staging_target_path,
    }
    NodeExpandVolumeRequest {
        text volume_id,
        path volume_path,
        path staging_target_path,
        within volume_capability,
        map secrets,
    }
    Topology { map segments }
    TopologyRequirement { within requisite, within preferred }
}

impl Limited for proto::VolumeCapability {
    fn check(&self) -> Result<(), Status> {
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
    fn check(&self) -> Result<(), Status> {
        match &self.r#type {
            Some(Type::Snapshot(source)) => text("snapshot_id", &source.snapshot_id),
            Some(Type::Volume(source)) => text("volume_id", &source.volume_id),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_told_with_its_size_and_the_limit() {
        let request = proto::DeleteVolumeRequest {
            volume_id: "d".repeat(129),
            ..proto::DeleteVolumeRequest::default()
        };
        let refused = fit(Request::new(request)).map(|_| ()).unwrap_err();
        assert_eq!(
            refused.message(),
            "volume_id has 129 bytes; CSI allows at most 128"
        );
        let request = proto::DeleteVolumeRequest {
            volume_id: "d".repeat(128),
            secrets: [("k".to_owned(), "v".repeat(4095))].into(),
        };
        assert!(fit(Request::new(request.clone())).is_ok());
        let request = proto::DeleteVolumeRequest {
            secrets: [("k".to_owned(), "v".repeat(4096))].into(),
            ..request
        };
        let refused = fit(Request::new(request)).map(|_| ()).unwrap_err();
        assert_eq!(
            refused.message(),
            "secrets has 4097 bytes; CSI allows at most 4096"
        );
    }

    #[test]
    fn a_path_may_be_as_long_as_linux_allows() {
        let stage = |length| {
            let request = proto::NodeStageVolumeRequest {
                volume_id: "d-1".to_owned(),
                staging_target_path: "/".repeat(length),
                ..proto::NodeStageVolumeRequest::default()
            };
            fit(Request::new(request)).map(|_| ())
        };
        assert!(stage(4095).is_ok());
        let refused = stage(4096).unwrap_err();
        assert!(
            refused
                .message()
                .starts_with("staging_target_path has 4096"),
            "{refused}"
        );
    }
}
