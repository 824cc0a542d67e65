//! CSI calls of sidecars and kubelet.

use std::path::{Path, PathBuf};
use std::time::Duration;

use diskplugin::csi::proto::controller_client::ControllerClient;
use diskplugin::csi::proto::node_client::NodeClient;
use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use diskplugin::csi::proto::volume_capability::{AccessType, MountVolume};
use diskplugin::csi::proto::{
    ControllerPublishVolumeRequest, CreateVolumeRequest, ListVolumesRequest, NodeGetInfoRequest, NodeGetInfoResponse,
    VolumeCapability,
};
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use super::request;

/// The socket of a role under test.
pub(crate) fn socket(directory: &TempDir) -> PathBuf {
    directory.path().join("csi.sock")
}

/// The flag `--endpoint` for a socket.
pub(crate) fn endpoint(socket: &Path) -> String {
    format!("--endpoint=unix://{}", socket.display())
}

/// A new connection; none if the socket is not served.
pub(crate) async fn try_connect(socket: &Path) -> Option<Channel> {
    let endpoint = Endpoint::try_from(format!("unix://{}", socket.display()));
    endpoint.expect("an absolute path").connect().await.ok()
}

/// A request with this timeout.
pub(crate) fn within<T>(time: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(time);
    request
}

/// ext4 for one writer.
pub(crate) fn capability() -> VolumeCapability {
    filesystem("ext4")
}

/// A filesystem for one writer.
pub(crate) fn filesystem(fs_type: &str) -> VolumeCapability {
    let mount = MountVolume {
        fs_type: fs_type.to_owned(),
        ..MountVolume::default()
    };
    with_mode(AccessType::Mount(mount), Mode::SingleNodeWriter)
}

/// The capability with a read-only access mode.
pub(crate) fn read_only(capability: VolumeCapability) -> VolumeCapability {
    with_mode(capability.access_type, Mode::SingleNodeReaderOnly)
}

pub(crate) fn with_mode(access_type: impl Into<Option<AccessType>>, mode: Mode) -> VolumeCapability {
    request::capability(mode, access_type.into())
}

pub(crate) fn with_flags(mut capability: VolumeCapability, flags: &[&str]) -> VolumeCapability {
    if let Some(AccessType::Mount(mount)) = &mut capability.access_type {
        mount.mount_flags = flags.iter().map(|&flag| flag.to_owned()).collect();
    }
    capability
}

/// Asserts that a call failed with this code and a message with these parts. It begins with the name of the failure.
pub(crate) fn assert_fails<T: std::fmt::Debug>(result: Result<T, Status>, code: Code, parts: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    for part in parts {
        let is_name = part.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        let is_there = match is_name {
            true => error.message().starts_with(part),
            false => error.message().contains(part),
        };
        assert!(is_there, "no {part:?}: {error}");
    }
}

pub(crate) fn volume(name: &str) -> CreateVolumeRequest {
    CreateVolumeRequest {
        volume_capabilities: vec![capability()],
        ..request::new_volume(name)
    }
}

/// Creates a volume and returns its ID.
pub(crate) async fn create(channel: &Channel, name: &str) -> Result<String, Status> {
    let mut controller = ControllerClient::new(channel.clone());
    let created = controller.create_volume(volume(name)).await?;
    let volume = created.into_inner().volume;
    Ok(volume.expect("a success has a volume").volume_id)
}

pub(crate) async fn publish(channel: &Channel, volume: &str, node: &str) -> Result<(), Status> {
    let request = ControllerPublishVolumeRequest {
        volume_capability: Some(capability()),
        ..request::publication(volume, node)
    };
    let mut controller = ControllerClient::new(channel.clone());
    controller.controller_publish_volume(request).await?;
    Ok(())
}

/// The number of volumes in `ListVolumes`.
pub(crate) async fn list(channel: &Channel) -> Result<usize, Status> {
    let mut controller = ControllerClient::new(channel.clone());
    let listed = controller.list_volumes(ListVolumesRequest::default()).await?;
    Ok(listed.into_inner().entries.len())
}

pub(crate) async fn info(channel: &Channel) -> Result<NodeGetInfoResponse, Status> {
    let mut node = NodeClient::new(channel.clone());
    let info = node.node_get_info(NodeGetInfoRequest {}).await?;
    Ok(info.into_inner())
}
