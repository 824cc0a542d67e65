//! The RPCs: read the request, call the verb, answer.

use std::collections::HashMap;
use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::{request, status};
use crate::csi::proto::node_server;
use crate::csi::proto::node_service_capability::{Rpc, Type, rpc};
use crate::csi::proto::volume_usage::Unit;
use crate::csi::proto::{
    NodeExpandVolumeRequest, NodeExpandVolumeResponse, NodeGetCapabilitiesRequest,
    NodeGetCapabilitiesResponse, NodeGetInfoRequest, NodeGetInfoResponse,
    NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse, NodePublishVolumeRequest,
    NodePublishVolumeResponse, NodeServiceCapability, NodeStageVolumeRequest,
    NodeStageVolumeResponse, NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse,
    NodeUnstageVolumeRequest, NodeUnstageVolumeResponse, Topology, VolumeUsage,
};
use crate::csi::{deadline, layer};
use crate::model::topology::{TAKEN, ZONE_KEY, category_key};
use crate::node::{Amount, Node, VolumeStats};

/// What the node can do beyond publishing.
const CAPABILITIES: [rpc::Type; 4] = [
    rpc::Type::StageUnstageVolume,
    rpc::Type::GetVolumeStats,
    rpc::Type::ExpandVolume,
    rpc::Type::SingleNodeMultiWriter,
];

/// The Node service of one node.
#[derive(Debug, Clone)]
pub struct Service {
    node: Arc<Node>,
}

impl Service {
    /// The service of this node.
    #[must_use]
    pub fn new(node: Arc<Node>) -> Self {
        Self { node }
    }
}

fn about(volume: &str, path: &str) {
    layer::about("disk.id", volume);
    layer::about("path", path);
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl node_server::Node for Service {
    async fn node_stage_volume(
        &self,
        request: Request<NodeStageVolumeRequest>,
    ) -> Answer<NodeStageVolumeResponse> {
        let deadline = deadline::of(&request);
        about(
            &request.get_ref().volume_id,
            &request.get_ref().staging_target_path,
        );
        let wanted = request::stage(request.get_ref()).map_err(|e| status::invalid(&e))?;
        let staged = self.node.stage(wanted, deadline).await;
        staged.map_err(|e| status::failed(&e))?;
        Ok(Response::new(NodeStageVolumeResponse {}))
    }

    async fn node_unstage_volume(
        &self,
        request: Request<NodeUnstageVolumeRequest>,
    ) -> Answer<NodeUnstageVolumeResponse> {
        about(
            &request.get_ref().volume_id,
            &request.get_ref().staging_target_path,
        );
        let wanted = request::unstage(request.get_ref()).map_err(|e| status::invalid(&e))?;
        let unstaged = self.node.unstage(wanted).await;
        unstaged.map_err(|e| status::failed(&e))?;
        Ok(Response::new(NodeUnstageVolumeResponse {}))
    }

    async fn node_publish_volume(
        &self,
        request: Request<NodePublishVolumeRequest>,
    ) -> Answer<NodePublishVolumeResponse> {
        let deadline = deadline::of(&request);
        about(&request.get_ref().volume_id, &request.get_ref().target_path);
        let wanted = request::publish(request.get_ref()).map_err(|e| status::invalid(&e))?;
        let published = self.node.publish(wanted, deadline).await;
        published.map_err(|e| status::failed(&e))?;
        Ok(Response::new(NodePublishVolumeResponse {}))
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> Answer<NodeUnpublishVolumeResponse> {
        about(&request.get_ref().volume_id, &request.get_ref().target_path);
        let wanted = request::unpublish(request.get_ref()).map_err(|e| status::invalid(&e))?;
        let unpublished = self.node.unpublish(wanted).await;
        unpublished.map_err(|e| status::failed(&e))?;
        Ok(Response::new(NodeUnpublishVolumeResponse {}))
    }

    async fn node_get_volume_stats(
        &self,
        request: Request<NodeGetVolumeStatsRequest>,
    ) -> Answer<NodeGetVolumeStatsResponse> {
        let deadline = deadline::of(&request);
        about(&request.get_ref().volume_id, &request.get_ref().volume_path);
        let wanted = request::stats(request.get_ref()).map_err(|e| status::invalid(&e))?;
        let stats = self.node.stats(&wanted, deadline).await;
        let usage = match stats.map_err(|e| status::failed(&e))? {
            VolumeStats::Filesystem(usage) => vec![
                amount(usage.bytes, Unit::Bytes),
                amount(usage.inodes, Unit::Inodes),
            ],
            VolumeStats::Device(size) => vec![VolumeUsage {
                total: size.to_i64(),
                unit: Unit::Bytes.into(),
                ..VolumeUsage::default()
            }],
        };
        Ok(Response::new(NodeGetVolumeStatsResponse {
            usage,
            volume_condition: None,
        }))
    }

    async fn node_expand_volume(
        &self,
        request: Request<NodeExpandVolumeRequest>,
    ) -> Answer<NodeExpandVolumeResponse> {
        let deadline = deadline::of(&request);
        about(&request.get_ref().volume_id, &request.get_ref().volume_path);
        let wanted = request::expand(request.get_ref()).map_err(|e| status::invalid(&e))?;
        let size = self.node.expand(wanted, deadline).await;
        Ok(Response::new(NodeExpandVolumeResponse {
            capacity_bytes: size.map_err(|e| status::failed(&e))?.to_i64(),
        }))
    }

    async fn node_get_capabilities(
        &self,
        _request: Request<NodeGetCapabilitiesRequest>,
    ) -> Answer<NodeGetCapabilitiesResponse> {
        let capabilities = CAPABILITIES
            .map(|rpc| NodeServiceCapability {
                r#type: Some(Type::Rpc(Rpc { r#type: rpc.into() })),
            })
            .to_vec();
        Ok(Response::new(NodeGetCapabilitiesResponse { capabilities }))
    }

    async fn node_get_info(
        &self,
        _request: Request<NodeGetInfoRequest>,
    ) -> Answer<NodeGetInfoResponse> {
        let info = self.node.info();
        let mut segments = HashMap::from([(ZONE_KEY.to_owned(), info.zone.to_string())]);
        let taken = |category| (category_key(category), TAKEN.to_owned());
        segments.extend(info.categories.iter().map(taken));
        Ok(Response::new(NodeGetInfoResponse {
            node_id: info.id.to_string(),
            // 0 leaves the limit to the orchestrator.
            max_volumes_per_node: info.max_volumes.map_or(0, i64::from),
            accessible_topology: Some(Topology { segments }),
        }))
    }
}

fn amount(amount: Amount, unit: Unit) -> VolumeUsage {
    let clamp = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    VolumeUsage {
        available: clamp(amount.available),
        total: clamp(amount.total),
        used: clamp(amount.used),
        unit: unit.into(),
    }
}
