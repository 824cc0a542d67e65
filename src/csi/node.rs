use std::collections::HashMap;
use std::sync::Arc;

use tonic::{Request, Response};

use crate::csi::proto::node_get_storage_health_response::StorageBackendHealth;
use crate::csi::proto::node_service_capability::{Rpc, Type, rpc};
use crate::csi::proto::volume_health::VolumeHealthEntry;
use crate::csi::proto::volume_usage::Unit;
use crate::csi::proto::{self, node_server};
use crate::csi::request::{RpcResult, node as request, read};
use crate::model::topology::{SUPPORTED, ZONE_KEY, category_key};
use crate::node::{Amount, HealthIssue, NodeServices, VolumeUsage};

const CAPABILITIES: [rpc::Type; 6] = [
    rpc::Type::StageUnstageVolume,
    rpc::Type::GetVolumeStats,
    rpc::Type::ExpandVolume,
    rpc::Type::GetVolumeHealth,
    rpc::Type::GetStorageHealth,
    rpc::Type::SingleNodeMultiWriter,
];

#[derive(Debug, Clone)]
pub struct Service {
    node: Arc<NodeServices>,
}

impl Service {
    pub fn new(node: Arc<NodeServices>) -> Self {
        Self { node }
    }
}

#[tonic::async_trait]
impl node_server::Node for Service {
    async fn node_stage_volume(
        &self,
        request: Request<proto::NodeStageVolumeRequest>,
    ) -> RpcResult<proto::NodeStageVolumeResponse> {
        let (deadline, wanted) = read(&request, request::stage)?;
        self.node.stager.stage(wanted, deadline).await?;
        Ok(Response::new(proto::NodeStageVolumeResponse {}))
    }

    async fn node_unstage_volume(
        &self,
        request: Request<proto::NodeUnstageVolumeRequest>,
    ) -> RpcResult<proto::NodeUnstageVolumeResponse> {
        let (deadline, wanted) = read(&request, request::unstage)?;
        self.node.unmounter.unstage(wanted, deadline).await?;
        Ok(Response::new(proto::NodeUnstageVolumeResponse {}))
    }

    async fn node_publish_volume(
        &self,
        request: Request<proto::NodePublishVolumeRequest>,
    ) -> RpcResult<proto::NodePublishVolumeResponse> {
        let (deadline, wanted) = read(&request, request::publish)?;
        self.node.publisher.publish(wanted, deadline).await?;
        Ok(Response::new(proto::NodePublishVolumeResponse {}))
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<proto::NodeUnpublishVolumeRequest>,
    ) -> RpcResult<proto::NodeUnpublishVolumeResponse> {
        let (deadline, wanted) = read(&request, request::unpublish)?;
        self.node.unmounter.unpublish(wanted, deadline).await?;
        Ok(Response::new(proto::NodeUnpublishVolumeResponse {}))
    }

    async fn node_get_volume_stats(
        &self,
        request: Request<proto::NodeGetVolumeStatsRequest>,
    ) -> RpcResult<proto::NodeGetVolumeStatsResponse> {
        let (deadline, wanted) = read(&request, request::stats)?;
        let report = self.node.health.stats(&wanted, deadline).await?;
        let usage = match report.usage {
            None => Vec::new(),
            Some(VolumeUsage::Filesystem(usage)) => {
                vec![amount(usage.bytes, Unit::Bytes), amount(usage.inodes, Unit::Inodes)]
            }
            // Also of a filesystem that does not respond: kubelet discards a response without usage.
            Some(VolumeUsage::Device(size)) => vec![proto::VolumeUsage {
                total: size.to_i64(),
                unit: Unit::Bytes.into(),
                ..proto::VolumeUsage::default()
            }],
        };
        Ok(Response::new(proto::NodeGetVolumeStatsResponse { usage }))
    }

    async fn node_get_volume_health(
        &self,
        request: Request<proto::NodeGetVolumeHealthRequest>,
    ) -> RpcResult<proto::NodeGetVolumeHealthResponse> {
        let (deadline, wanted) = read(&request, request::health)?;
        let issues = self.node.health.health(&wanted, deadline).await?;
        let entry = |issue: &HealthIssue| VolumeHealthEntry {
            status: match (issue, issue.is_fatal()) {
                (HealthIssue::DeviceTooSmall { .. }, _) => proto::VolumeHealthErrorType::DataLoss,
                (_, true) => proto::VolumeHealthErrorType::Inaccessible,
                (_, false) => proto::VolumeHealthErrorType::Degraded,
            }
            .into(),
            reason: issue.reason().to_owned(),
            message: issue.to_string(),
        };
        Ok(Response::new(proto::NodeGetVolumeHealthResponse {
            volume_health: Some(proto::VolumeHealth {
                volume_id: wanted.volume.id.to_string(),
                health_statuses: issues.iter().map(entry).collect(),
            }),
        }))
    }

    async fn node_get_storage_health(
        &self,
        _request: Request<proto::NodeGetStorageHealthRequest>,
    ) -> RpcResult<proto::NodeGetStorageHealthResponse> {
        let problem = self.node.health.storage_health().await;
        let entry = |message| StorageBackendHealth {
            status: proto::StorageHealthErrorType::StorageUnreachable.into(),
            reason: "DevicesUnreadable".to_owned(),
            message,
            volume_capability: None,
        };
        Ok(Response::new(proto::NodeGetStorageHealthResponse {
            backend_health: problem.into_iter().map(entry).collect(),
        }))
    }

    async fn node_expand_volume(
        &self,
        request: Request<proto::NodeExpandVolumeRequest>,
    ) -> RpcResult<proto::NodeExpandVolumeResponse> {
        let (deadline, wanted) = read(&request, request::expand)?;
        let size = self.node.expander.expand(wanted, deadline).await?;
        Ok(Response::new(proto::NodeExpandVolumeResponse {
            capacity_bytes: size.to_i64(),
        }))
    }

    async fn node_get_capabilities(
        &self,
        _request: Request<proto::NodeGetCapabilitiesRequest>,
    ) -> RpcResult<proto::NodeGetCapabilitiesResponse> {
        let capabilities = CAPABILITIES
            .map(|rpc| proto::NodeServiceCapability {
                r#type: Some(Type::Rpc(Rpc { r#type: rpc.into() })),
            })
            .to_vec();
        Ok(Response::new(proto::NodeGetCapabilitiesResponse { capabilities }))
    }

    async fn node_get_info(
        &self,
        _request: Request<proto::NodeGetInfoRequest>,
    ) -> RpcResult<proto::NodeGetInfoResponse> {
        let info = self.node.info.info().await?;
        let mut segments = HashMap::from([(ZONE_KEY.to_owned(), info.zone.to_string())]);
        let segment = |category| (category_key(category), SUPPORTED.to_owned());
        segments.extend(info.categories.iter().map(segment));
        Ok(Response::new(proto::NodeGetInfoResponse {
            node_id: info.id.to_string(),
            // 0: the orchestrator decides.
            max_volumes_per_node: info.max_volumes.map_or(0, i64::from),
            accessible_topology: Some(proto::Topology { segments }),
        }))
    }
}

fn amount(amount: Amount, unit: Unit) -> proto::VolumeUsage {
    let clamp = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    proto::VolumeUsage {
        available: clamp(amount.available),
        total: clamp(amount.total),
        used: clamp(amount.used),
        unit: unit.into(),
    }
}
