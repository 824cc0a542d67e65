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
    identity: identity::Service,
    routes: Routes,
    pub(super) registration: Option<Registration>,
}

impl Services {
    pub fn new(name: DriverName) -> Self {
        Self {
            identity: identity::Service {
                name,
                controller: false,
                ready: true,
            },
            routes: Routes::default(),
            registration: None,
        }
    }

    pub(super) fn standby(name: DriverName) -> Self {
        let mut services = Self::new(name);
        (services.identity.controller, services.identity.ready) = (true, false);
        services
    }

    pub fn with_controller(mut self, service: controller::Service) -> Self {
        let groups = GroupControllerServer::new(service.clone());
        let controller = ControllerServer::new(service);
        self.identity.controller = true;
        self.routes = self.routes.add_service(controller).add_service(groups);
        self
    }

    pub fn with_node(self, service: node::Service) -> Self {
        Self {
            routes: self.routes.add_service(NodeServer::new(service)),
            ..self
        }
    }

    /// Adds the registration with kubelet, if this process registers.
    pub fn with_registration(self, registration: Option<Registration>) -> Self {
        Self { registration, ..self }
    }

    pub(super) fn into_routes(self) -> Routes {
        self.routes.add_service(IdentityServer::new(self.identity))
    }
}
