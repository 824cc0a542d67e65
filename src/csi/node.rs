use std::collections::HashMap;
use std::sync::Arc;

use tonic::{Request, Response};

use crate::csi::health::volume_health;
use crate::csi::proto::node_get_storage_health_response::StorageBackendHealth;
use crate::csi::proto::node_service_capability::{Rpc, Type, rpc};
use crate::csi::proto::volume_usage::Unit;
use crate::csi::proto::{self, *};
use crate::csi::request::{RpcResult, node as request, read};
use crate::model::topology::{SUPPORTED, ZONE_KEY, category_key};
use crate::node::{Amount, NodeServices, VolumeUsage};

const CAPABILITIES: [rpc::Type; 6] = [
    rpc::Type::StageUnstageVolume,
    rpc::Type::GetVolumeStats,
    rpc::Type::ExpandVolume,
    rpc::Type::GetVolumeHealth,
    rpc::Type::GetStorageHealth,
    rpc::Type::SingleNodeMultiWriter,
];

#[derive(Debug, Clone)]
pub struct Service(pub Arc<NodeServices>);

#[tonic::async_trait]
impl node_server::Node for Service {
    async fn node_stage_volume(&self, request: Request<NodeStageVolumeRequest>) -> RpcResult<NodeStageVolumeResponse> {
        let (deadline, wanted) = read(&request, request::stage)?;
        self.0.stager.stage(wanted, deadline).await?;
        Ok(Response::new(NodeStageVolumeResponse {}))
    }

    async fn node_unstage_volume(
        &self,
        request: Request<NodeUnstageVolumeRequest>,
    ) -> RpcResult<NodeUnstageVolumeResponse> {
        let (deadline, wanted) = read(&request, request::unstage)?;
        self.0.unmounter.unstage(wanted, deadline).await?;
        Ok(Response::new(NodeUnstageVolumeResponse {}))
    }

    async fn node_publish_volume(
        &self,
        request: Request<NodePublishVolumeRequest>,
    ) -> RpcResult<NodePublishVolumeResponse> {
        let (deadline, wanted) = read(&request, request::publish)?;
        self.0.publisher.publish(wanted, deadline).await?;
        Ok(Response::new(NodePublishVolumeResponse {}))
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> RpcResult<NodeUnpublishVolumeResponse> {
        let (deadline, wanted) = read(&request, request::unpublish)?;
        self.0.unmounter.unpublish(wanted, deadline).await?;
        Ok(Response::new(NodeUnpublishVolumeResponse {}))
    }

    async fn node_get_volume_stats(
        &self,
        request: Request<NodeGetVolumeStatsRequest>,
    ) -> RpcResult<NodeGetVolumeStatsResponse> {
        let (deadline, wanted) = read(&request, request::stats)?;
        let report = self.0.health.stats(&wanted, deadline).await?;
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
        Ok(Response::new(NodeGetVolumeStatsResponse { usage }))
    }

    async fn node_get_volume_health(
        &self,
        request: Request<NodeGetVolumeHealthRequest>,
    ) -> RpcResult<NodeGetVolumeHealthResponse> {
        let (deadline, wanted) = read(&request, request::health)?;
        let issues = self.0.health.health(&wanted, deadline).await?;
        Ok(Response::new(NodeGetVolumeHealthResponse {
            volume_health: Some(volume_health(&wanted.volume.id, &issues)),
        }))
    }

    async fn node_get_storage_health(
        &self,
        _: Request<NodeGetStorageHealthRequest>,
    ) -> RpcResult<NodeGetStorageHealthResponse> {
        let problem = self.0.health.storage_health().await;
        let entry = |message| StorageBackendHealth {
            status: StorageHealthErrorType::StorageUnreachable.into(),
            reason: "DevicesUnreadable".to_owned(),
            message,
            volume_capability: None,
        };
        Ok(Response::new(NodeGetStorageHealthResponse {
            backend_health: problem.into_iter().map(entry).collect(),
        }))
    }

    async fn node_expand_volume(
        &self,
        request: Request<NodeExpandVolumeRequest>,
    ) -> RpcResult<NodeExpandVolumeResponse> {
        let (deadline, wanted) = read(&request, request::expand)?;
        let size = self.0.expander.expand(wanted, deadline).await?;
        Ok(Response::new(NodeExpandVolumeResponse {
            capacity_bytes: size.to_i64(),
        }))
    }

    async fn node_get_capabilities(
        &self,
        _: Request<NodeGetCapabilitiesRequest>,
    ) -> RpcResult<NodeGetCapabilitiesResponse> {
        let capabilities = CAPABILITIES
            .map(|rpc| NodeServiceCapability {
                r#type: Some(Type::Rpc(Rpc { r#type: rpc.into() })),
            })
            .to_vec();
        Ok(Response::new(NodeGetCapabilitiesResponse { capabilities }))
    }

    async fn node_get_info(&self, _: Request<NodeGetInfoRequest>) -> RpcResult<NodeGetInfoResponse> {
        let info = self.0.info.info().await?;
        let mut segments = HashMap::from([(ZONE_KEY.to_owned(), info.zone.to_string())]);
        let segment = |category| (category_key(category), SUPPORTED.to_owned());
        segments.extend(info.categories.iter().map(segment));
        Ok(Response::new(NodeGetInfoResponse {
            node_id: info.id.to_string(),
            // 0: the orchestrator decides.
            max_volumes_per_node: info.max_volumes.map_or(0, i64::from),
            accessible_topology: Some(Topology { segments }),
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
