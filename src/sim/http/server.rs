//! The HTTP server: one thread of its own, where time is real whatever the caller's runtime does.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::doorman::Nonces;
use super::imds::Sessions;
use super::reply::{self, Body, Wired};
use super::request::Wire;
use crate::base::Tasks;
use crate::sim::credential::Keys;
use crate::sim::shared::Shared;

/// How long accepting rests when it has failed, as when all file descriptors are taken.
const REST: Duration = Duration::from_millis(10);

/// The fake cloud over HTTP.
pub(crate) struct Server {
    address: SocketAddr,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

/// What all requests share.
pub(super) struct Face {
    pub(super) shared: Arc<Shared>,
    pub(super) keys: Keys,
    /// Whether the listener is bound to a loopback address.
    pub(super) loopback: bool,
    memory: Mutex<Memory>,
    tasks: Tasks,
}

/// What the gateway and the metadata service remember.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) nonces: Nonces,
    pub(super) sessions: Sessions,
    /// The temporary keys that the Security Token Service gave out.
    pub(super) issued: crate::sim::sts::Sessions,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({})", self.uri())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        // The port is free and nothing is served any more when this has ended.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Server {
    /// Serves on the listener until it is dropped.
    pub(crate) fn start(
        listener: TcpListener,
        shared: Arc<Shared>,
        keys: Keys,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let face = Arc::new(Face {
            shared,
            keys,
            loopback: address.ip().is_loopback(),
            memory: Mutex::default(),
            tasks: Tasks::default(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let stop = CancellationToken::new();
        let until = stop.clone();
        let serve = move || {
            let accepting = async {
                match tokio::net::TcpListener::from_std(listener) {
                    Ok(listener) => accept(&face, &listener).await,
                    // It was made non-blocking above.
                    Err(error) => tracing::error!(%error, "the fake cloud cannot listen"),
                }
            };
            // What still runs then goes with the runtime.
            runtime.block_on(until.run_until_cancelled(accepting));
        };
        let thread = thread::Builder::new().name("fake-cloud".to_owned());
        Ok(Self {
            address,
            stop,
            thread: Some(thread.spawn(serve)?),
        })
    }

    /// `http://ADDRESS`.
    pub(crate) fn uri(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn accept(face: &Arc<Face>, listener: &tokio::net::TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => face.tasks.start(connection(Arc::clone(face), stream)),
            Err(_) => tokio::time::sleep(REST).await,
        }
    }
}

async fn connection(face: Arc<Face>, stream: TcpStream) {
    // Small answers must not wait for one another.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| answer(Arc::clone(&face), request));
    // Whatever ends a connection, the caller of an action sees it.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// The answer to a request; an error ends the connection without one.
async fn answer(
    face: Arc<Face>,
    request: hyper::Request<Incoming>,
) -> io::Result<hyper::Response<Body>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let tasks = face.tasks.clone();
    // As in the real cloud, a caller that hangs up stops nothing.
    let work = async move { face.handle(&Wire::of(&head, &body)).await };
    match tasks.run(work).await {
        Wired::Respond(response) => Ok(response.send(&tasks).await),
        Wired::Reset => Err(io::ErrorKind::ConnectionReset.into()),
    }
}

impl Face {
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn handle(&self, wire: &Wire<'_>) -> Wired {
        if wire.path == "/" && super::sts::is_for(wire) {
            self.sts(wire)
        } else if wire.path == "/" {
            self.api(wire).await
        } else if let Some(path) = wire.path.strip_prefix("/imds/") {
            self.imds(wire, path)
        } else if let Some(path) = wire.path.strip_prefix("/_control/") {
            self.control(wire, path)
        } else {
            Wired::Respond(reply::text(404, "not found"))
        }
    }
}
