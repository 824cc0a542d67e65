//! The gRPC services that a process serves.

use tonic::service::Routes;

use super::proto::controller_server::ControllerServer;
use super::proto::group_controller_server::GroupControllerServer;
use super::proto::identity_server::IdentityServer;
use super::proto::node_server::NodeServer;
use super::registration::Registration;
use super::{controller, identity, node};
use crate::model::DriverName;

/// The services of a role besides Identity. Each is added by its own method, so that the linker leaves those that a
/// program does not serve out of it.
#[derive(Debug)]
pub struct Services {
    name: DriverName,
    has_controller: bool,
    is_standby: bool,
    routes: Routes,
    pub(super) registration: Option<Registration>,
}

impl Services {
    #[must_use]
    pub fn new(name: DriverName) -> Self {
        Self {
            name,
            has_controller: false,
            is_standby: false,
            routes: Routes::default(),
            registration: None,
        }
    }

    /// Identity of a controller that is not ready.
    pub(super) fn standby(name: DriverName) -> Self {
        Self {
            has_controller: true,
            is_standby: true,
            ..Self::new(name)
        }
    }

    /// Adds Controller and GroupController.
    #[must_use]
    pub fn with_controller(self, service: controller::Service) -> Self {
        let groups = GroupControllerServer::new(service.clone());
        let controller = ControllerServer::new(service);
        Self {
            has_controller: true,
            routes: self.routes.add_service(controller).add_service(groups),
            ..self
        }
    }

    #[must_use]
    pub fn with_node(self, service: node::Service) -> Self {
        Self {
            routes: self.routes.add_service(NodeServer::new(service)),
            ..self
        }
    }

    /// Adds the registration with kubelet, if this process registers.
    #[must_use]
    pub fn with_registration(self, registration: Option<Registration>) -> Self {
        Self { registration, ..self }
    }

    /// All services, with Identity.
    pub(super) fn into_routes(self) -> Routes {
        let identity = identity::Service {
            name: self.name,
            controller: self.has_controller,
            ready: !self.is_standby,
        };
        self.routes.add_service(IdentityServer::new(identity))
    }
}
