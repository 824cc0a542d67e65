//! Registration with kubelet without node-driver-registrar: serves kubelet's plugin registration API on a socket in
//! kubelet's directory `plugins_registry`.

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use super::authority;
use super::proto::pluginregistration::registration_server::{Registration as Rpcs, RegistrationServer};
use super::proto::pluginregistration::{InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse};
use super::socket::{self, Endpoint, Socket, SocketError};
use crate::base::error_chain;
use crate::model::DriverName;

const PLUGIN_TYPE: &str = "CSIPlugin";

/// The CSI version that node-driver-registrar reports for every CSI 1 driver. kubelet requires a complete version and
/// evaluates its major part.
const VERSION: &str = "1.0.0";

const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// Interval of checks that the socket still exists: other programs write to the directory.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// How long to wait for kubelet to receive the last response.
const LINGER: Duration = Duration::from_millis(200);

/// A registration with kubelet. Clones share its state.
#[derive(Debug, Clone)]
pub struct Registration(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    socket: Endpoint,
    name: DriverName,
    csi_socket: PathBuf,
    state: watch::Sender<RegistrationState>,
    rejected: Notify,
    restart: Notify,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistrationState {
    Pending,
    Registered,
    Rejected(String),
}

#[derive(Debug)]
enum End {
    /// kubelet rejected the registration. It retries only with a new socket.
    Rejected,
    Removed,
    Restarted,
    Failed(String),
}

impl Registration {
    /// `csi_socket` is the path of the CSI socket on the host.
    ///
    /// # Errors
    ///
    /// The problem of `--registration-dir`.
    pub fn new(directory: &Path, name: DriverName, csi_socket: PathBuf) -> Result<Self, String> {
        let flag = format!("--registration-dir {}", directory.display());
        match fs::metadata(directory) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                return Err(format!(
                    "{flag} is not a directory: set it to kubelet's directory plugins_registry"
                ));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(format!(
                    "{flag} does not exist: set it to the directory plugins_registry below kubelet's --root-dir, mounted \
                     from the host"
                ));
            }
            Err(error) => return Err(format!("cannot access {flag}: {error}")),
        }
        let socket = format!("unix://{}/{name}-reg.sock", directory.display());
        let too_long = |_| format!("{flag} is too long: the path of the socket in it exceeds 107 bytes");
        let socket = socket.parse().map_err(too_long)?;
        Ok(Self(Arc::new(Inner {
            socket,
            name,
            csi_socket,
            state: watch::Sender::new(RegistrationState::Pending),
            rejected: Notify::new(),
            restart: Notify::new(),
        })))
    }

    pub fn state(&self) -> RegistrationState {
        self.0.state.borrow().clone()
    }

    /// Waits until the driver is registered, or until it is not registered any more.
    pub async fn wait_registered(&self, registered: bool) {
        let mut state = self.0.state.subscribe();
        // `self` owns the sender, so the channel cannot be closed.
        let _ = state
            .wait_for(|state| (*state == RegistrationState::Registered) == registered)
            .await;
    }

    /// Registers again, because kubelet requests topology only at registration. The driver is unregistered for about a
    /// second; kubelet retries operations in this time.
    pub fn restart(&self) {
        self.0.restart.notify_one();
    }

    /// Binds the registration socket. kubelet may call the CSI socket from now on.
    pub(super) async fn listen(&self) -> Result<(UnixListener, Socket), SocketError> {
        let bound = socket::bind(&self.0.socket).await?;
        tracing::info!(socket = %self.0.socket, csi = %self.0.csi_socket.display(), "waiting for registration by kubelet");
        Ok(bound)
    }

    fn set(&self, state: RegistrationState) {
        self.0.state.send_replace(state);
    }

    /// Resets the state at the end of a socket, except for the error of a rejection. Returns the state before.
    fn reset(&self, rejected: bool) -> RegistrationState {
        let before = self.state();
        if !(rejected && matches!(before, RegistrationState::Rejected(_))) {
            self.set(RegistrationState::Pending);
        }
        before
    }

    pub fn rejection_message(&self, error: &str) -> String {
        format!(
            "kubelet has rejected the registration: {error}; the driver retries automatically. If kubelet does not find {}, \
             set --kubelet-socket to the path of the CSI socket on the host; otherwise check kubelet's log",
            self.0.csi_socket.display()
        )
    }

    /// Serves kubelet, and binds a new socket after a rejection, a restart or the removal of the socket.
    /// Dropping the future removes the socket.
    pub(super) async fn serve(self, (mut listener, mut socket): (UnixListener, Socket)) -> Infallible {
        let mut pause = MIN_PAUSE;
        loop {
            let begun = Instant::now();
            let end = self.serve_once(listener, socket).await;
            let before = self.reset(matches!(end, End::Rejected));
            if before == RegistrationState::Registered || begun.elapsed() > MAX_PAUSE {
                pause = MIN_PAUSE;
            }
            match end {
                End::Rejected => tracing::info!("retrying the registration in {pause:?}"),
                End::Removed => {
                    tracing::warn!(socket = %self.0.socket, "the registration socket was removed; creating it again");
                }
                // Without backoff: pods wait for the driver.
                End::Restarted => pause = MIN_PAUSE,
                End::Failed(error) => tracing::error!("the registration socket failed: {error}"),
            }
            (listener, socket) = loop {
                tokio::time::sleep(pause).await;
                pause = MAX_PAUSE.min(pause * 2);
                match self.listen().await {
                    Ok(bound) => break bound,
                    Err(error) => tracing::warn!("cannot listen for registration: {}", error_chain(&error)),
                }
            };
        }
    }

    async fn serve_once(&self, listener: UnixListener, socket: Socket) -> End {
        for notify in [&self.0.rejected, &self.0.restart] {
            // Consumes a stored permit of an earlier socket, if any.
            pin!(notify.notified()).enable();
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let server = Server::builder().add_service(RegistrationServer::new(self.clone()));
        let served = server.serve_with_incoming_shutdown(authority::accept(listener), async {
            // Sent or dropped: both stop the server.
            let _ = stopped.await;
        });
        tokio::pin!(served);
        let end = tokio::select! {
            () = self.0.rejected.notified() => End::Rejected,
            () = self.0.restart.notified() => End::Restarted,
            () = wait_removed(&socket) => End::Removed,
            outcome = &mut served => {
                let error = outcome.err();
                return End::Failed(error.map_or_else(|| "it has stopped".to_owned(), |error| error_chain(&error)));
            }
        };
        let _ = stop.send(());
        // Waits for the last response, but not for open connections.
        let _ = tokio::time::timeout(LINGER, served).await;
        end
    }
}

async fn wait_removed(socket: &Socket) {
    while socket.exists() {
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

#[tonic::async_trait]
impl Rpcs for Registration {
    async fn get_info(&self, _: Request<InfoRequest>) -> Result<Response<PluginInfo>, Status> {
        tracing::info!(name = %self.0.name, "kubelet requested the plugin info");
        Ok(Response::new(PluginInfo {
            r#type: PLUGIN_TYPE.to_owned(),
            name: self.0.name.to_string(),
            endpoint: self.0.csi_socket.display().to_string(),
            supported_versions: vec![VERSION.to_owned()],
        }))
    }

    async fn notify_registration_status(
        &self,
        request: Request<RegistrationStatus>,
    ) -> Result<Response<RegistrationStatusResponse>, Status> {
        let status = request.into_inner();
        if status.plugin_registered {
            tracing::info!(name = %self.0.name, "registered with kubelet");
            self.set(RegistrationState::Registered);
        } else {
            tracing::error!(name = %self.0.name, "{}", self.rejection_message(&status.error));
            self.set(RegistrationState::Rejected(status.error));
            self.0.rejected.notify_one();
        }
        Ok(Response::new(RegistrationStatusResponse {}))
    }
}

#[cfg(test)]
mod tests;
