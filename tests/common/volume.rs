//! The calls of kubelet for a volume.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use diskplugin::csi::node::Service;
use diskplugin::csi::proto::node_client::NodeClient;
use diskplugin::csi::proto::node_server::Node as _;
use diskplugin::csi::proto::volume_health::VolumeHealthEntry;
use diskplugin::csi::proto::{
    CapacityRange, NodeExpandVolumeRequest, NodeGetVolumeHealthRequest, NodeGetVolumeStatsRequest,
    NodeGetVolumeStatsResponse, NodePublishVolumeRequest, NodeStageVolumeRequest, NodeUnpublishVolumeRequest,
    NodeUnstageVolumeRequest, VolumeCapability,
};
use tonic::transport::Channel;
use tonic::{Response, Status};

use super::csi::within;

/// Timeout of calls that must complete, also on a busy machine.
pub(crate) const LONG_TIMEOUT: Duration = Duration::from_secs(60);

/// The node that is called.
#[derive(Debug, Clone)]
pub(crate) enum NodePort {
    InProcess(Service),
    Socket(Channel),
}

/// A volume as kubelet uses it: one staging path, one pod.
#[derive(Debug, Clone)]
pub(crate) struct NodeVolume {
    pub(crate) port: NodePort,
    /// Timeout of each call.
    pub(crate) timeout: Duration,
    pub(crate) id: String,
    pub(crate) staging: String,
    pub(crate) target: String,
    pub(crate) capability: Option<VolumeCapability>,
    /// The volume context, from the parameters of the class.
    pub(crate) context: HashMap<String, String>,
    pub(crate) publish_context: HashMap<String, String>,
    /// `readonly` of NodePublishVolume, as in a pod's volume mount.
    pub(crate) readonly: bool,
}

/// Sends a request with the timeout of the volume.
macro_rules! send {
    ($volume:ident.$method:ident($request:expr)) => {{
        let request = within($volume.timeout, $request);
        let response = match &$volume.port {
            NodePort::InProcess(service) => service.$method(request).await,
            NodePort::Socket(channel) => NodeClient::new(channel.clone()).$method(request).await,
        };
        response.map(Response::into_inner)
    }};
}

impl NodeVolume {
    /// A volume with the paths `staging` and `target` in a directory.
    pub(crate) fn new(port: NodePort, id: String, directory: &Path, capability: Option<VolumeCapability>) -> Self {
        Self {
            port,
            timeout: LONG_TIMEOUT,
            id,
            staging: directory.join("staging").display().to_string(),
            target: directory.join("target").display().to_string(),
            capability,
            context: HashMap::new(),
            publish_context: HashMap::new(),
            readonly: false,
        }
    }

    /// The same volume for calls with another timeout.
    pub(crate) fn within(&self, timeout: Duration) -> Self {
        Self {
            timeout,
            ..self.clone()
        }
    }

    /// The same volume with another capability.
    pub(crate) fn with(&self, capability: Option<VolumeCapability>) -> Self {
        Self {
            capability,
            ..self.clone()
        }
    }

    /// The same volume with another target path, relative to the directory of the staging path.
    pub(crate) fn at(&self, target: &str) -> Self {
        let directory = Path::new(&self.staging).parent().unwrap();
        let target = directory.join(target).display().to_string();
        Self { target, ..self.clone() }
    }

    /// The same volume, published read-only.
    pub(crate) fn read_only(&self) -> Self {
        let readonly = true;
        Self {
            readonly,
            ..self.clone()
        }
    }

    pub(crate) async fn stage(&self) -> Result<(), Status> {
        let request = NodeStageVolumeRequest {
            volume_id: self.id.clone(),
            staging_target_path: self.staging.clone(),
            volume_capability: self.capability.clone(),
            volume_context: self.context.clone(),
            publish_context: self.publish_context.clone(),
            ..Default::default()
        };
        send!(self.node_stage_volume(request)).map(drop)
    }

    pub(crate) async fn publish(&self) -> Result<(), Status> {
        let request = NodePublishVolumeRequest {
            volume_id: self.id.clone(),
            staging_target_path: self.staging.clone(),
            target_path: self.target.clone(),
            volume_capability: self.capability.clone(),
            volume_context: self.context.clone(),
            publish_context: self.publish_context.clone(),
            readonly: self.readonly,
            ..Default::default()
        };
        send!(self.node_publish_volume(request)).map(drop)
    }

    pub(crate) async fn unpublish(&self) -> Result<(), Status> {
        let request = NodeUnpublishVolumeRequest {
            volume_id: self.id.clone(),
            target_path: self.target.clone(),
        };
        send!(self.node_unpublish_volume(request)).map(drop)
    }

    pub(crate) async fn unstage(&self) -> Result<(), Status> {
        let request = NodeUnstageVolumeRequest {
            volume_id: self.id.clone(),
            staging_target_path: self.staging.clone(),
        };
        send!(self.node_unstage_volume(request)).map(drop)
    }

    /// Stages and publishes.
    pub(crate) async fn mount(&self) {
        let staged = self.stage().await;
        staged.unwrap_or_else(|error| panic!("staging {}: {error}", self.id));
        let published = self.publish().await;
        published.unwrap_or_else(|error| panic!("publishing {}: {error}", self.id));
    }

    /// Unpublishes and unstages.
    pub(crate) async fn unmount(&self) {
        let unpublished = self.unpublish().await;
        unpublished.unwrap_or_else(|error| panic!("unpublishing {}: {error}", self.id));
        let unstaged = self.unstage().await;
        unstaged.unwrap_or_else(|error| panic!("unstaging {}: {error}", self.id));
    }

    /// Expands the volume at its target; returns the new size.
    pub(crate) async fn expand(&self, required: u64) -> Result<u64, Status> {
        self.expand_to(required, 0).await
    }

    /// The same with a limit.
    pub(crate) async fn expand_to(&self, required: u64, limit: u64) -> Result<u64, Status> {
        let request = NodeExpandVolumeRequest {
            volume_id: self.id.clone(),
            volume_path: self.target.clone(),
            staging_target_path: self.staging.clone(),
            capacity_range: Some(CapacityRange {
                required_bytes: i64::try_from(required).unwrap(),
                limit_bytes: i64::try_from(limit).unwrap(),
            }),
            volume_capability: self.capability.clone(),
            ..Default::default()
        };
        let response = send!(self.node_expand_volume(request))?;
        Ok(u64::try_from(response.capacity_bytes).unwrap())
    }

    pub(crate) async fn stats(&self) -> Result<NodeGetVolumeStatsResponse, Status> {
        let request = NodeGetVolumeStatsRequest {
            volume_id: self.id.clone(),
            volume_path: self.target.clone(),
            staging_target_path: self.staging.clone(),
        };
        send!(self.node_get_volume_stats(request))
    }

    /// The total bytes that the volume statistics report.
    pub(crate) async fn total_bytes(&self) -> Result<u64, Status> {
        Ok(u64::try_from(self.stats().await?.usage[0].total).unwrap())
    }

    /// The health issues; none for a healthy volume.
    pub(crate) async fn health(&self) -> Result<Vec<VolumeHealthEntry>, Status> {
        let request = NodeGetVolumeHealthRequest {
            volume_id: self.id.clone(),
            volume_publish_path: self.target.clone(),
            staging_target_path: self.staging.clone(),
        };
        let response = send!(self.node_get_volume_health(request))?;
        Ok(response.volume_health.unwrap().health_statuses)
    }
}
