//! The HTTP server. It runs in its own thread, so that its time is real even if the caller's
//! runtime is paused.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::gateway::Gateway;
use super::request::HttpRequest;
use super::response::{Body, Exchange};
use crate::credential::Keys;
use crate::run_to_completion::run_to_completion;
use crate::shared::Shared;

/// Pause after a failed accept, such as when no file descriptor is free.
const REST: Duration = Duration::from_millis(10);

pub(crate) struct Server {
    address: SocketAddr,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({})", self.uri())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        // The port is free once the thread has ended.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Server {
    /// Serves the listener until it is dropped.
    pub(crate) fn start(listener: TcpListener, shared: Arc<Shared>, keys: Keys) -> io::Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let gateway = Arc::new(Gateway::new(shared, keys, address.ip().is_loopback()));
        let tasks = TaskTracker::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stop = CancellationToken::new();
        let until = stop.clone();
        let serve = move || {
            let accepting = async {
                match tokio::net::TcpListener::from_std(listener) {
                    Ok(listener) => accept(&gateway, &tasks, &listener).await,
                    // The listener was set to non-blocking above.
                    Err(error) => tracing::error!(%error, "the fake cloud cannot listen"),
                }
            };
            // Remaining requests end with the runtime.
            runtime.block_on(until.run_until_cancelled(accepting));
        };
        let thread = thread::Builder::new().name("fake-cloud".to_owned());
        Ok(Self {
            address,
            stop,
            thread: Some(thread.spawn(serve)?),
        })
    }

    pub(crate) fn uri(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn accept(gateway: &Arc<Gateway>, tasks: &TaskTracker, listener: &tokio::net::TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tasks.spawn(connection(Arc::clone(gateway), tasks.clone(), stream));
            }
            Err(_) => tokio::time::sleep(REST).await,
        }
    }
}

async fn connection(gateway: Arc<Gateway>, tasks: TaskTracker, stream: TcpStream) {
    // Small responses must not be delayed.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| respond(Arc::clone(&gateway), tasks.clone(), request));
    // A broken connection is reported to the client only.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// The response to a request; an error ends the connection without one.
async fn respond(
    gateway: Arc<Gateway>,
    tasks: TaskTracker,
    request: hyper::Request<Incoming>,
) -> io::Result<hyper::Response<Body>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    // As in the real cloud, a call completes even if its client disconnects.
    let work = async move {
        let parsed = HttpRequest::new(&head.method, &head.uri, &head.headers, &body);
        gateway.handle(&parsed).await
    };
    match run_to_completion(&tasks, work).await {
        Exchange::Response(response) => Ok(response.send(&tasks).await),
        Exchange::Hang => std::future::pending().await,
        Exchange::Reset => Err(io::ErrorKind::ConnectionReset.into()),
    }
}
