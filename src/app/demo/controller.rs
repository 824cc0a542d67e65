//! Calls of the Controller service.

use anyhow::Context;
use tonic::transport::Channel;

use super::client::{GROWN, SIZE, at_least, gib, request, response};
use super::node::{AttachedVolume, NodeSide};
use crate::csi::proto;
use crate::csi::proto::controller_client::ControllerClient;
use crate::csi::proto::volume_content_source::{SnapshotSource, Type as Source};
use crate::csi::proto::{VolumeCapability, VolumeContentSource};

/// The controller, and the capability with which its volumes are requested.
#[derive(Debug)]
pub(super) struct ControllerSide {
    pub(super) client: ControllerClient<Channel>,
    pub(super) capability: VolumeCapability,
}

impl ControllerSide {
    pub(super) async fn create(&self, name: &str, snapshot: Option<&str>) -> anyhow::Result<(String, String)> {
        let source = snapshot.map(|id| VolumeContentSource {
            r#type: Some(Source::Snapshot(SnapshotSource {
                snapshot_id: id.to_owned(),
            })),
        });
        let message = proto::CreateVolumeRequest {
            name: name.to_owned(),
            capacity_range: Some(at_least(SIZE)),
            volume_capabilities: vec![self.capability.clone()],
            parameters: [("type".to_owned(), "cloud_essd".to_owned())].into(),
            volume_content_source: source,
            ..proto::CreateVolumeRequest::default()
        };
        let created = response(self.client.clone().create_volume(request(message))).await?;
        let volume = created.volume.context("the response has no volume")?;
        let zones: Vec<_> = volume
            .accessible_topology
            .iter()
            .flat_map(|t| t.segments.values().cloned())
            .collect();
        let size = gib(volume.capacity_bytes);
        let remark = format!("{}: {size} of cloud_essd in {}", volume.volume_id, zones.join(", "));
        Ok((volume.volume_id, remark))
    }

    pub(super) async fn attach(&self, volume: &str, node: &NodeSide) -> anyhow::Result<(AttachedVolume, String)> {
        let message = proto::ControllerPublishVolumeRequest {
            volume_id: volume.to_owned(),
            node_id: node.id.clone(),
            volume_capability: Some(self.capability.clone()),
            ..proto::ControllerPublishVolumeRequest::default()
        };
        let published = response(self.client.clone().controller_publish_volume(request(message))).await?;
        let attached = AttachedVolume {
            volume_id: volume.to_owned(),
            publish_context: published.publish_context,
        };
        Ok((attached, String::new()))
    }

    pub(super) async fn snapshot(&self, volume: &str) -> anyhow::Result<(String, String)> {
        let message = proto::CreateSnapshotRequest {
            source_volume_id: volume.to_owned(),
            name: "demo-snapshot".to_owned(),
            ..proto::CreateSnapshotRequest::default()
        };
        let mut ready = false;
        let mut id = String::new();
        // Like the snapshotter sidecar: repeat until the snapshot is ready to use.
        while !ready {
            let created = response(self.client.clone().create_snapshot(request(message.clone()))).await?;
            let snapshot = created.snapshot.context("the response has no snapshot")?;
            (ready, id) = (snapshot.ready_to_use, snapshot.snapshot_id);
        }
        Ok((id.clone(), id))
    }

    pub(super) async fn grow(&self, volume: &str) -> anyhow::Result<((), String)> {
        let message = proto::ControllerExpandVolumeRequest {
            volume_id: volume.to_owned(),
            capacity_range: Some(at_least(GROWN)),
            volume_capability: Some(self.capability.clone()),
            ..proto::ControllerExpandVolumeRequest::default()
        };
        let expanded = response(self.client.clone().controller_expand_volume(request(message))).await?;
        Ok(((), format!("now {}", gib(expanded.capacity_bytes))))
    }

    pub(super) async fn detach(&self, volume: &str, node: &NodeSide) -> anyhow::Result<((), String)> {
        let message = proto::ControllerUnpublishVolumeRequest {
            volume_id: volume.to_owned(),
            node_id: node.id.clone(),
            ..proto::ControllerUnpublishVolumeRequest::default()
        };
        response(self.client.clone().controller_unpublish_volume(request(message))).await?;
        Ok(((), String::new()))
    }

    pub(super) async fn delete(&self, volume: &str) -> anyhow::Result<((), String)> {
        let message = proto::DeleteVolumeRequest {
            volume_id: volume.to_owned(),
            ..proto::DeleteVolumeRequest::default()
        };
        response(self.client.clone().delete_volume(request(message))).await?;
        Ok(((), volume.to_owned()))
    }

    pub(super) async fn delete_snapshot(&self, snapshot: &str) -> anyhow::Result<((), String)> {
        let message = proto::DeleteSnapshotRequest {
            snapshot_id: snapshot.to_owned(),
            ..proto::DeleteSnapshotRequest::default()
        };
        response(self.client.clone().delete_snapshot(request(message))).await?;
        Ok(((), snapshot.to_owned()))
    }
}
