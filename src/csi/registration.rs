//! The registration with kubelet, which the node plugin serves itself: a socket in kubelet's directory, where kubelet
//! asks who the driver is and says whether it took it up.

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use super::authority;
use super::proto::pluginregistration::registration_server::{
    Registration as Rpcs, RegistrationServer,
};
use super::proto::pluginregistration::{
    InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse,
};
use super::socket::{self, Endpoint, Socket, SocketError};
use crate::base::chain::chain;
use crate::model::DriverName;

/// What kubelet calls the plugins of this kind.
const KIND: &str = "CSIPlugin";

/// The version of CSI that is offered: the one that upstream's registrar offers for every driver of CSI 1. kubelet
/// wants a whole version, and looks at the first part of it.
const VERSION: &str = "1.0.0";

/// How soon a refused registration is offered again, twice as late after each refusal, up to the limit.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// How often it is looked whether the socket is still in its place: kubelet's directory is not ours.
const LOOK: Duration = Duration::from_secs(10);

/// How long the last answers may take to reach kubelet.
const LINGER: Duration = Duration::from_millis(200);

/// A registration with kubelet. Clones share what became of it.
#[derive(Debug, Clone)]
pub struct Registration(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    socket: Endpoint,
    name: DriverName,
    /// The CSI socket, as kubelet finds it.
    csi: PathBuf,
    stage: watch::Sender<Stage>,
    refused: Notify,
    renewed: Notify,
}

/// What became of a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// kubelet has not said anything yet.
    Offered,
    /// kubelet has taken the driver up.
    Registered,
    /// kubelet has refused it, in its own words.
    Refused(String),
}

/// Why nothing can be offered.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// There is no such directory.
    #[error(
        "--registration-dir {} does not exist: it is kubelet's directory plugins_registry, below kubelet's --root-dir, \
         and a container needs it as a mount of the host",
        .0.display()
    )]
    Missing(PathBuf),
    /// It is something else.
    #[error("--registration-dir {} is no directory: it is kubelet's directory plugins_registry", .0.display())]
    NotADirectory(PathBuf),
    /// It cannot be looked at.
    #[error("--registration-dir {} cannot be looked at", directory.display())]
    Unreadable {
        /// The directory.
        directory: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// No socket can have this path.
    #[error("--registration-dir {} is too long a path: with the socket's name it has more than 107 bytes", .0.display())]
    TooLong(PathBuf),
}

/// A registration whose socket is there.
#[derive(Debug)]
pub(super) struct Offered {
    registration: Registration,
    listener: UnixListener,
    socket: Socket,
}

/// Why an offer ended.
#[derive(Debug)]
enum End {
    /// kubelet refused it, and tries no second time before the socket comes anew.
    Refused,
    /// The socket is not in its place any more.
    Lost,
    /// kubelet shall ask anew.
    Renewed,
    /// The server failed.
    Failed(String),
}

impl Registration {
    /// A registration of the driver in kubelet's directory; `csi` is the CSI socket as kubelet finds it.
    ///
    /// # Errors
    /// When the directory is not there, is none, or is too deep for a socket.
    pub fn new(
        directory: &Path,
        name: DriverName,
        csi: PathBuf,
    ) -> Result<Self, RegistrationError> {
        match fs::metadata(directory) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(RegistrationError::NotADirectory(directory.to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(RegistrationError::Missing(directory.to_owned()));
            }
            Err(source) => {
                return Err(RegistrationError::Unreadable {
                    directory: directory.to_owned(),
                    source,
                });
            }
        }
        let socket = format!("unix://{}/{name}-reg.sock", directory.display());
        let socket = socket.parse();
        let socket = socket.map_err(|_| RegistrationError::TooLong(directory.to_owned()))?;
        Ok(Self(Arc::new(Inner {
            socket,
            name,
            csi,
            stage: watch::Sender::new(Stage::Offered),
            refused: Notify::new(),
            renewed: Notify::new(),
        })))
    }

    /// What became of it.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.0.stage.borrow().clone()
    }

    /// Returns when it is, or is not any more, what kubelet has taken up.
    pub async fn until(&self, registered: bool) {
        let mut stage = self.0.stage.subscribe();
        // The sender is ours, so that it is there.
        let _ = stage
            .wait_for(|stage| (*stage == Stage::Registered) == registered)
            .await;
    }

    /// Registers anew, for kubelet asks for topology only then. For about a second kubelet does not know the driver: what it
    /// wants of it meanwhile it tries again.
    pub fn renew(&self) {
        self.0.renewed.notify_one();
    }

    /// The CSI socket, as kubelet was told it.
    #[must_use]
    pub fn csi_socket(&self) -> &Path {
        &self.0.csi
    }

    /// Puts the socket where kubelet finds it: from now on it may call the CSI socket.
    pub(super) async fn offer(&self) -> Result<Offered, SocketError> {
        let (listener, socket) = socket::bind(&self.0.socket).await?;
        tracing::info!(socket = %self.0.socket, csi = %self.0.csi.display(), "offered to kubelet");
        Ok(Offered {
            registration: self.clone(),
            listener,
            socket,
        })
    }

    fn set(&self, stage: Stage) {
        self.0.stage.send_replace(stage);
    }

    /// The offer has ended: whatever kubelet said of it does not count any more. Answers what that was.
    fn end(&self, refused: bool) -> Stage {
        let was = self.stage();
        if !(refused && matches!(was, Stage::Refused(_))) {
            self.set(Stage::Offered);
        }
        was
    }

    /// Forgets what was said of an earlier offer.
    fn forget(&self) {
        for said in [&self.0.refused, &self.0.renewed] {
            // It takes what is left there, if anything is.
            pin!(said.notified()).enable();
        }
    }
}

impl Offered {
    /// Serves kubelet, and offers anew what it refused and a socket that went. Dropping it takes the socket away.
    pub(super) async fn keep(mut self) -> Infallible {
        let mut pause = PAUSE;
        loop {
            let registration = self.registration.clone();
            let begun = Instant::now();
            let end = self.serve().await;
            // Of a refusal the words stay, for whoever asks.
            let was = registration.end(matches!(end, End::Refused));
            if was == Stage::Registered || begun.elapsed() > LONGEST_PAUSE {
                pause = PAUSE;
            }
            match end {
                End::Refused => tracing::info!("offered to kubelet again in {pause:?}"),
                End::Lost => {
                    tracing::warn!(socket = %registration.0.socket, "the registration socket has gone; it is made anew");
                }
                // Pods wait for the driver meanwhile.
                End::Renewed => pause = PAUSE,
                End::Failed(error) => tracing::error!("the registration socket failed: {error}"),
            }
            self = loop {
                tokio::time::sleep(pause).await;
                pause = LONGEST_PAUSE.min(pause * 2);
                match registration.offer().await {
                    Ok(offered) => break offered,
                    Err(error) => tracing::warn!("not registered: {}", chain(&error)),
                }
            };
        }
    }

    async fn serve(self) -> End {
        let Self {
            registration,
            listener,
            socket,
        } = self;
        registration.forget();
        let (stop, stopped) = oneshot::channel::<()>();
        let incoming = authority::accept(listener);
        let server = Server::builder().add_service(RegistrationServer::new(registration.clone()));
        let served = server.serve_with_incoming_shutdown(incoming, async {
            // Dropped or sent: both mean the end.
            let _ = stopped.await;
        });
        tokio::pin!(served);
        let end = tokio::select! {
            () = registration.0.refused.notified() => End::Refused,
            () = registration.0.renewed.notified() => End::Renewed,
            () = gone(&socket) => End::Lost,
            outcome = &mut served => {
                let error = outcome.err();
                End::Failed(error.map_or_else(|| "it has ended".to_owned(), |error| chain(&error)))
            }
        };
        if !matches!(end, End::Failed(_)) {
            let _ = stop.send(());
            // Its last word is answered; connections that never end are left.
            let _ = tokio::time::timeout(LINGER, served).await;
        }
        end
    }
}

/// Returns when the socket is not in its place any more.
async fn gone(socket: &Socket) {
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while socket.is_in_place() {
        look.tick().await;
    }
}

#[tonic::async_trait]
impl Rpcs for Registration {
    async fn get_info(&self, _: Request<InfoRequest>) -> Result<Response<PluginInfo>, Status> {
        tracing::info!(name = %self.0.name, "kubelet asks who this is");
        Ok(Response::new(PluginInfo {
            r#type: KIND.to_owned(),
            name: self.0.name.to_string(),
            endpoint: self.0.csi.display().to_string(),
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
            self.set(Stage::Registered);
        } else {
            tracing::error!(name = %self.0.name, "{}", self.refusal(&status.error));
            self.set(Stage::Refused(status.error));
            self.0.refused.notify_one();
        }
        Ok(Response::new(RegistrationStatusResponse {}))
    }
}

impl Registration {
    /// That kubelet has refused it with these words, and what to do.
    #[must_use]
    pub fn refusal(&self, words: &str) -> String {
        format!(
            "kubelet has refused the registration: {words}; it is offered again by itself. If kubelet does not find {}, \
             set --kubelet-socket to the CSI socket's path on the host; else see kubelet's log",
            self.0.csi.display()
        )
    }
}

#[cfg(test)]
mod tests;
