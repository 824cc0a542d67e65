//! The gRPC server: which services are on the socket, and how it comes and goes.

use std::future::Future;
use std::time::Duration;

use tonic::transport::Server;

use super::authority;
use super::drain::Drain;
use super::layer::Edge;
use super::proto::controller_server::ControllerServer;
use super::proto::group_controller_server::GroupControllerServer;
use super::proto::identity_server::IdentityServer;
use super::proto::node_server::NodeServer;
use super::registration::Registration;
use super::socket::{self, Endpoint, SocketError};
use super::{controller, group, identity, node};
use crate::base::Tasks;
use crate::model::DriverName;

/// What is served.
#[derive(Debug, Clone)]
pub struct Services {
    /// The driver's name.
    pub name: DriverName,
    /// The Controller and the GroupController service, where this role has them.
    pub controller: Option<controller::Service>,
    /// The Node service, where this role has it.
    pub node: Option<node::Service>,
    /// The registration with kubelet, where this process sees to it.
    pub registration: Option<Registration>,
}

/// How long the last answers may take to reach their readers.
const LINGER: Duration = Duration::from_millis(200);

/// Why serving ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The socket cannot be had.
    #[error("cannot listen")]
    Socket(#[source] SocketError),
    /// The socket of the registration cannot be had.
    #[error("cannot register with kubelet")]
    Registration(#[source] SocketError),
    /// Work was cut off; it is found again by the next call for it.
    #[error("work was still running {grace:?} after the signal and has been cut off")]
    CutOff {
        /// The time it was given.
        grace: Duration,
    },
    /// The server failed.
    #[error("the server failed")]
    Transport(#[source] tonic::transport::Error),
}

/// Serves until `stop` resolves; then refuses new calls, lets running ones and the work that they
/// started finish, but not longer than `grace`, and takes the socket away. Where there is a registration,
/// kubelet is offered it from when the socket listens until the end.
///
/// # Errors
/// When a socket cannot be had or the server fails.
pub async fn serve(
    endpoint: &Endpoint,
    services: Services,
    tasks: Tasks,
    stop: impl Future<Output = ()> + Send,
    grace: Duration,
) -> Result<(), ServeError> {
    let (listener, socket) = socket::bind(endpoint).await.map_err(ServeError::Socket)?;
    // Only now: whom kubelet finds, it calls at once.
    let offered = match &services.registration {
        Some(registration) => Some(
            registration
                .offer()
                .await
                .map_err(ServeError::Registration)?,
        ),
        None => None,
    };
    let registered = async {
        match offered {
            Some(offered) => offered.keep().await,
            None => std::future::pending().await,
        }
    };
    let drain = Drain::default();
    let identity = identity::Service {
        name: services.name,
        controller: services.controller.is_some(),
    };
    let groups = services.controller.clone().map(group::Service::of);
    let router = Server::builder()
        .layer(Edge::new(drain.clone()))
        .add_service(IdentityServer::new(identity))
        .add_optional_service(services.controller.map(ControllerServer::new))
        .add_optional_service(groups.map(GroupControllerServer::new))
        .add_optional_service(services.node.map(NodeServer::new));
    let drained = async move {
        stop.await;
        tracing::info!("stopping: new calls are refused, running ones finish");
        let finish = async {
            drain.finish().await;
            tasks.finish().await;
        };
        match tokio::time::timeout(grace, finish).await {
            Ok(()) => Ok(()),
            Err(_) => Err(ServeError::CutOff { grace }),
        }
    };
    tracing::info!(%endpoint, "ready");
    let incoming = authority::accept(listener);
    let (finished, over) = tokio::sync::oneshot::channel();
    // On the heap: it is large, and every role would carry it.
    let served = Box::pin(router.serve_with_incoming_shutdown(incoming, async move {
        // The receiver is below, and waits.
        let _ = finished.send(drained.await);
    }));
    // Idle connections of clients that never hang up must not keep a drained process.
    let linger = async {
        let Ok(drained) = over.await else {
            return std::future::pending().await;
        };
        tokio::time::sleep(LINGER).await;
        drained
    };
    tokio::pin!(linger);
    let outcome = tokio::select! {
        never = registered => match never {},
        outcome = &mut linger => outcome,
        served = served => match served {
            Ok(()) => linger.await,
            Err(error) => Err(ServeError::Transport(error)),
        },
    };
    drop(socket);
    tracing::info!(%endpoint, "stopped");
    outcome
}
