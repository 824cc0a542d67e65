//! Calls of the Node service.

use std::path::PathBuf;

use anyhow::Context;
use tonic::transport::Channel;

use super::client::{GROWN, at_least, gib, request, response, text};
use crate::csi::proto;
use crate::csi::proto::VolumeCapability;
use crate::csi::proto::node_client::NodeClient;

#[derive(Debug, Clone)]
pub(super) struct NodeSide {
    pub(super) id: String,
    pub(super) client: Option<NodeClient<Channel>>,
    pub(super) kubelet: PathBuf,
    /// That of the volumes.
    pub(super) capability: VolumeCapability,
}

/// A volume that is attached to a node.
#[derive(Debug, Clone, Default)]
pub(super) struct AttachedVolume {
    pub(super) volume_id: String,
    pub(super) publish_context: std::collections::HashMap<String, String>,
}

impl NodeSide {
    pub(super) async fn stage(&self, volume: &AttachedVolume) -> anyhow::Result<((), String)> {
        let message = proto::NodeStageVolumeRequest {
            volume_id: volume.volume_id.clone(),
            publish_context: volume.publish_context.clone(),
            staging_target_path: text(&self.staging())?,
            volume_capability: Some(self.capability.clone()),
            ..proto::NodeStageVolumeRequest::default()
        };
        std::fs::create_dir_all(self.staging())?;
        response(self.client()?.node_stage_volume(request(message))).await?;
        Ok(((), String::new()))
    }

    pub(super) async fn publish(&self, volume: &AttachedVolume) -> anyhow::Result<((), String)> {
        let message = proto::NodePublishVolumeRequest {
            volume_id: volume.volume_id.clone(),
            publish_context: volume.publish_context.clone(),
            staging_target_path: text(&self.staging())?,
            target_path: text(&self.pod())?,
            volume_capability: Some(self.capability.clone()),
            ..proto::NodePublishVolumeRequest::default()
        };
        response(self.client()?.node_publish_volume(request(message))).await?;
        Ok(((), self.mounted()?))
    }

    pub(super) async fn grow_mounted(&self, volume: &str) -> anyhow::Result<((), String)> {
        let before = self.total(volume).await?;
        let message = proto::NodeExpandVolumeRequest {
            volume_id: volume.to_owned(),
            volume_path: text(&self.pod())?,
            staging_target_path: text(&self.staging())?,
            capacity_range: Some(at_least(GROWN)),
            volume_capability: Some(self.capability.clone()),
            ..proto::NodeExpandVolumeRequest::default()
        };
        response(self.client()?.node_expand_volume(request(message))).await?;
        let after = self.total(volume).await?;
        anyhow::ensure!(after > before, "the filesystem still has {after} bytes");
        Ok(((), format!("from {} to {}", gib(before), gib(after))))
    }

    async fn total(&self, volume: &str) -> anyhow::Result<i64> {
        let message = proto::NodeGetVolumeStatsRequest {
            volume_id: volume.to_owned(),
            volume_path: text(&self.pod())?,
            staging_target_path: text(&self.staging())?,
        };
        let stats = response(self.client()?.node_get_volume_stats(request(message))).await?;
        let mut usage = stats.usage.iter();
        let bytes = usage.find(|usage| usage.unit() == proto::volume_usage::Unit::Bytes);
        Ok(bytes.context("the response has no usage in bytes")?.total)
    }

    pub(super) async fn unpublish_and_unstage(&self, volume: &str) -> anyhow::Result<((), String)> {
        let unpublish = proto::NodeUnpublishVolumeRequest {
            volume_id: volume.to_owned(),
            target_path: text(&self.pod())?,
        };
        response(self.client()?.node_unpublish_volume(request(unpublish))).await?;
        let unstage = proto::NodeUnstageVolumeRequest {
            volume_id: volume.to_owned(),
            staging_target_path: text(&self.staging())?,
        };
        response(self.client()?.node_unstage_volume(request(unstage))).await?;
        Ok(((), String::new()))
    }

    fn client(&self) -> anyhow::Result<NodeClient<Channel>> {
        self.client.clone().context("this node is not served")
    }

    fn staging(&self) -> PathBuf {
        self.kubelet.join("staging")
    }

    pub(super) fn pod(&self) -> PathBuf {
        self.kubelet.join("pod")
    }

    /// The mount of the pod in `/proc/self/mounts`.
    fn mounted(&self) -> anyhow::Result<String> {
        let table = std::fs::read_to_string("/proc/self/mounts")?;
        let pod = text(&self.pod())?;
        let line = table.lines().find(|line| line.split(' ').nth(1) == Some(pod.as_str()));
        let line = line.with_context(|| format!("nothing is mounted at {pod}"))?;
        let fields: Vec<&str> = line.split(' ').take(3).collect();
        Ok(fields.join(" "))
    }
}
