use std::future::Future;
use std::time::Duration;

use tokio_util::task::TaskTracker;
use tonic::transport::Server;

use super::authority;
use super::layer::{Active, rpc_layer};
use super::services::Services;
use super::socket::{self, Endpoint, SocketError};
use crate::base::Tasks;
use crate::model::DriverName;

/// How long to wait for clients to receive the last responses.
const LINGER: Duration = Duration::from_millis(200);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen")]
    Socket(#[source] SocketError),
    #[error("cannot register with kubelet")]
    Registration(#[source] SocketError),
    /// Work was aborted; the next call for it continues.
    #[error("calls were still running {grace:?} after the signal and were aborted")]
    DrainTimeout { grace: Duration },
    #[error("the server failed")]
    Transport(#[source] tonic::transport::Error),
}

/// Serves until `stop` resolves. Then it rejects new calls, waits up to `grace` for running calls and their background
/// work, and removes the socket. A registration is served as long as the socket.
pub async fn serve(
    endpoint: &Endpoint,
    services: Services,
    tasks: Tasks,
    stop: impl Future<Output = ()> + Send,
    grace: Duration,
) -> Result<(), ServeError> {
    let services = std::future::ready(services);
    serve_when_active(endpoint, services, None, tasks, stop, grace).await
}

/// As [`serve`], once the process is the leader. A standby has no socket or, with `standby`, one that serves only
/// Identity and responds to Probe with not ready: sidecars wait for that, but exit if they cannot connect for 30
/// seconds.
pub async fn serve_when_active(
    endpoint: &Endpoint,
    services: impl Future<Output = Services> + Send,
    standby: Option<DriverName>,
    tasks: Tasks,
    stop: impl Future<Output = ()> + Send,
    grace: Duration,
) -> Result<(), ServeError> {
    let (mut services, mut stop) = (Box::pin(services), Box::pin(stop));
    let (first, active) = match standby {
        Some(name) => (Services::standby(name), Some(Active::default())),
        None => tokio::select! {
            services = &mut services => (services, None),
            () = &mut stop => return Ok(()),
        },
    };
    let (listener, socket) = socket::bind(endpoint).await.map_err(ServeError::Socket)?;
    // After the CSI socket: kubelet calls a registered driver immediately.
    let registration = match first.registration.clone() {
        Some(registration) => {
            let listening = registration.listen().await.map_err(ServeError::Registration)?;
            Some(registration.serve(listening))
        }
        None => None,
    };
    let registered = async {
        match registration {
            Some(registration) => registration.await,
            None => std::future::pending().await,
        }
    };
    let calls = TaskTracker::new();
    let router = Server::builder()
        .layer(rpc_layer(calls.clone(), active.clone()))
        .add_routes(first.into_routes());
    let activated = async move {
        if let Some(active) = active {
            active.set(services.await.into_routes());
        }
        std::future::pending().await
    };
    let drained = async move {
        stop.await;
        tracing::info!("stopping: rejecting new calls, waiting for running calls");
        let finish = async {
            calls.close();
            calls.wait().await;
            tasks.wait().await;
        };
        let finished = tokio::time::timeout(grace, finish).await;
        finished.map_err(|_| ServeError::DrainTimeout { grace })
    };
    tracing::info!(%endpoint, "ready");
    let incoming = authority::accept(listener);
    let (finished, over) = tokio::sync::oneshot::channel();
    // On the heap: the future is large and would be part of every role.
    let served = Box::pin(router.serve_with_incoming_shutdown(incoming, async move {
        // The receiver below is still waiting.
        let _ = finished.send(drained.await);
    }));
    // Idle client connections must not keep a drained process running.
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
        never = activated => match never {},
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
