use tonic::{Request, Response};

use super::proto::identity_server::Identity;
use super::proto::plugin_capability::volume_expansion::Type as Expansion;
use super::proto::plugin_capability::{self, Service as ServiceCapability, VolumeExpansion, service};
use super::proto::*;
use super::request::RpcResult;
use crate::model::DriverName;

#[derive(Debug, Clone)]
pub struct Service {
    pub name: DriverName,
    /// Whether the Controller service is on the same socket.
    pub controller: bool,
    /// False for a standby, whose other services are created when it becomes the leader.
    pub ready: bool,
}

impl Service {
    fn capabilities(&self) -> Vec<PluginCapability> {
        use plugin_capability::Type;
        let service = |kind: service::Type| Type::Service(ServiceCapability { r#type: kind.into() });
        let expansion = |kind: Expansion| Type::VolumeExpansion(VolumeExpansion { r#type: kind.into() });
        let mut capabilities = vec![
            service(service::Type::VolumeAccessibilityConstraints),
            expansion(Expansion::Online),
        ];
        if self.controller {
            capabilities.push(service(service::Type::ControllerService));
            capabilities.push(service(service::Type::GroupControllerService));
            capabilities.push(service(service::Type::SnapshotAccessibilityConstraints));
        }
        let capability = |kind| PluginCapability { r#type: Some(kind) };
        capabilities.into_iter().map(capability).collect()
    }
}

#[tonic::async_trait]
impl Identity for Service {
    async fn get_plugin_info(&self, _: Request<GetPluginInfoRequest>) -> RpcResult<GetPluginInfoResponse> {
        Ok(Response::new(GetPluginInfoResponse {
            name: self.name.to_string(),
            vendor_version: env!("CARGO_PKG_VERSION").to_owned(),
            manifest: std::collections::HashMap::new(),
        }))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> RpcResult<GetPluginCapabilitiesResponse> {
        let capabilities = self.capabilities();
        Ok(Response::new(GetPluginCapabilitiesResponse { capabilities }))
    }

    async fn probe(&self, _: Request<ProbeRequest>) -> RpcResult<ProbeResponse> {
        let ready = Some(self.ready);
        Ok(Response::new(ProbeResponse { ready }))
    }
}
