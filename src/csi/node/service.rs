//! The RPCs: read the request, call the verb, answer.

use std::collections::HashMap;
use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::{request, status};
use crate::csi::proto::node_get_storage_health_response::StorageBackendHealth;
use crate::csi::proto::node_server;
use crate::csi::proto::node_service_capability::{Rpc, Type, rpc};
use crate::csi::proto::volume_health::VolumeHealthEntry;
use crate::csi::proto::volume_usage::Unit;
use crate::csi::proto::{
    NodeExpandVolumeRequest, NodeExpandVolumeResponse, NodeGetCapabilitiesRequest,
    NodeGetCapabilitiesResponse, NodeGetInfoRequest, NodeGetInfoResponse,
    NodeGetStorageHealthRequest, NodeGetStorageHealthResponse, NodeGetVolumeHealthRequest,
    NodeGetVolumeHealthResponse, NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse,
    NodePublishVolumeRequest, NodePublishVolumeResponse, NodeServiceCapability,
    NodeStageVolumeRequest, NodeStageVolumeResponse, NodeUnpublishVolumeRequest,
    NodeUnpublishVolumeResponse, NodeUnstageVolumeRequest, NodeUnstageVolumeResponse,
    StorageHealthErrorType, Topology, VolumeCondition, VolumeHealth, VolumeHealthErrorType,
    VolumeUsage,
};
use crate::csi::{deadline, layer, limits};
use crate::model::topology::{TAKEN, ZONE_KEY, category_key};
use crate::node::health::Ailment;
use crate::node::{Amount, Node, VolumeStats};

/// What the node can do beyond publishing.
const CAPABILITIES: [rpc::Type; 7] = [
    rpc::Type::StageUnstageVolume,
    rpc::Type::GetVolumeStats,
    rpc::Type::ExpandVolume,
    rpc::Type::VolumeCondition,
    rpc::Type::GetVolumeHealth,
    rpc::Type::GetStorageHealth,
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
        let (deadline, request) = (deadline::of(&request), limits::fit(request)?);
        about(&request.volume_id, &request.staging_target_path);
        let wanted = request::stage(&request).map_err(|e| status::invalid(&e))?;
        let staged = self.node.stage(wanted, deadline).await;
        staged.map_err(|e| status::failed(&e))?;
        Ok(Response::new(NodeStageVolumeResponse {}))
    }

    async fn node_unstage_volume(
        &self,
        request: Request<NodeUnstageVolumeRequest>,
    ) -> Answer<NodeUnstageVolumeResponse> {
        let (deadline, request) = (deadline::of(&request), limits::fit(request)?);
        about(&request.volume_id, &request.staging_target_path);
        let wanted = request::unstage(&request).map_err(|e| status::invalid(&e))?;
        let unstaged = self.node.unstage(wanted, deadline).await;
        unstaged.map_err(|e| status::failed(&e))?;
        Ok(Response::new(NodeUnstageVolumeResponse {}))
    }

    async fn node_publish_volume(
        &self,
        request: Request<NodePublishVolumeRequest>,
    ) -> Answer<NodePublishVolumeResponse> {
        let (deadline, request) = (deadline::of(&request), limits::fit(request)?);
        about(&request.volume_id, &request.target_path);
        let wanted = request::publish(&request).map_err(|e| status::invalid(&e))?;
        let published = self.node.publish(wanted, deadline).await;
        published.map_err(|e| status::failed(&e))?;
        Ok(Response::new(NodePublishVolumeResponse {}))
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> Answer<NodeUnpublishVolumeResponse> {
        let (deadline, request) = (deadline::of(&request), limits::fit(request)?);
        about(&request.volume_id, &request.target_path);
        let wanted = request::unpublish(&request).map_err(|e| status::invalid(&e))?;
        let unpublished = self.node.unpublish(wanted, deadline).await;
        unpublished.map_err(|e| status::failed(&e))?;
        Ok(Response::new(NodeUnpublishVolumeResponse {}))
    }

    async fn node_get_volume_stats(
        &self,
        request: Request<NodeGetVolumeStatsRequest>,
    ) -> Answer<NodeGetVolumeStatsResponse> {
        let (deadline, request) = (deadline::of(&request), limits::fit(request)?);
        about(&request.volume_id, &request.volume_path);
        let wanted = request::stats(&request).map_err(|e| status::invalid(&e))?;
        let report = self.node.stats(&wanted, deadline).await;
        let report = report.map_err(|e| status::failed(&e))?;
        let usage = match report.usage {
            None => Vec::new(),
            Some(VolumeStats::Filesystem(usage)) => vec![
                amount(usage.bytes, Unit::Bytes),
                amount(usage.inodes, Unit::Inodes),
            ],
            // Also where the filesystem does not answer: kubelet throws an answer without any usage
            // away, and the condition with it.
            Some(VolumeStats::Device(size)) => vec![VolumeUsage {
                total: size.to_i64(),
                unit: Unit::Bytes.into(),
                ..VolumeUsage::default()
            }],
        };
        Ok(Response::new(NodeGetVolumeStatsResponse {
            usage,
            volume_condition: Some(condition(&report.ailments)),
        }))
    }

    async fn node_get_volume_health(
        &self,
        request: Request<NodeGetVolumeHealthRequest>,
    ) -> Answer<NodeGetVolumeHealthResponse> {
        let (deadline, request) = (deadline::of(&request), limits::fit(request)?);
        about(&request.volume_id, &request.volume_publish_path);
        let wanted = request::health(&request).map_err(|e| status::invalid(&e))?;
        let found = self.node.health(&wanted, deadline).await;
        let found = found.map_err(|e| status::failed(&e))?;
        let entry = |one: &Ailment| VolumeHealthEntry {
            status: match (one, one.is_fatal()) {
                (Ailment::DeviceTooSmall { .. }, _) => VolumeHealthErrorType::DataLoss,
                (_, true) => VolumeHealthErrorType::Inaccessible,
                (_, false) => VolumeHealthErrorType::Degraded,
            }
            .into(),
            reason: one.reason().to_owned(),
            message: one.to_string(),
        };
        Ok(Response::new(NodeGetVolumeHealthResponse {
            volume_health: Some(VolumeHealth {
                volume_id: wanted.volume.id.to_string(),
                health_statuses: found.iter().map(entry).collect(),
            }),
        }))
    }

    async fn node_get_storage_health(
        &self,
        _request: Request<NodeGetStorageHealthRequest>,
    ) -> Answer<NodeGetStorageHealthResponse> {
        let wrong = self.node.storage_health().await;
        let entry = |message| StorageBackendHealth {
            status: StorageHealthErrorType::StorageUnreachable.into(),
            reason: "DevicesUnreadable".to_owned(),
            message,
            volume_capability: None,
        };
        Ok(Response::new(NodeGetStorageHealthResponse {
            backend_health: wrong.into_iter().map(entry).collect(),
        }))
    }

    async fn node_expand_volume(
        &self,
        request: Request<NodeExpandVolumeRequest>,
    ) -> Answer<NodeExpandVolumeResponse> {
        let (deadline, request) = (deadline::of(&request), limits::fit(request)?);
        about(&request.volume_id, &request.volume_path);
        let wanted = request::expand(&request).map_err(|e| status::invalid(&e))?;
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
        let info = self.node.info().await.map_err(|e| status::failed(&e))?;
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

fn condition(found: &[Ailment]) -> VolumeCondition {
    let messages: Vec<_> = found.iter().map(ToString::to_string).collect();
    VolumeCondition {
        abnormal: !found.is_empty(),
        message: if found.is_empty() {
            "nothing is known to be wrong".to_owned()
        } else {
            messages.join("; ")
        },
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
