//! The HTTP port: probes for kubelet, metrics, histories of volumes, and the status page.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower::Service;

pub(crate) use self::access::Authorizer;
use self::connections::Connections;
pub(crate) use self::pages::{Page, Site};
pub(crate) use self::tls::Tls;
use crate::base::Deadline;
use crate::linux::listen;

mod access;
mod connections;
mod disk_state;
pub(crate) mod health;
pub(crate) mod metrics;
mod pages;
pub(crate) mod status;
mod tls;

/// Timeout for the request headers.
const HEADER_TIMEOUT: Duration = Duration::from_secs(1);

/// Timeout of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(1);

/// Timeout of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after a failed accept, for example when the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The bound port and how it is protected.
#[derive(Debug)]
pub(crate) struct Port {
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
}

/// Binds the address of `--http-address`.
pub(crate) async fn bind(address: SocketAddr, tls: Option<Tls>) -> anyhow::Result<Port> {
    let listener = listen(address).await.with_context(|| {
        format!(
            "cannot listen on --http-address {address}; with hostNetwork the port must be free on the whole machine: \
             choose another port"
        )
    })?;
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, tls = tls.is_some(), "serving /healthz, /readyz and /metrics");
    }
    Ok(Port {
        listener,
        tls: tls.map(Arc::new),
    })
}

/// Serves requests; without a port, it never returns.
pub(crate) async fn serve(port: Option<&Port>, site: Site) -> Infallible {
    let Some(Port { listener, tls }) = port else {
        return std::future::pending().await;
    };
    let (router, mut connections) = (pages::router(site), Connections::default());
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let (router, tls) = (router.clone(), tls.clone());
                let serve = |arrived| async move { connection(stream, tls.as_deref(), router, arrived).await };
                connections.serve(serve).await;
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn connection(stream: TcpStream, tls: Option<&Tls>, router: Router, arrived: CancellationToken) {
    let Some(tls) = tls else {
        return requests(stream, router, arrived).await;
    };
    let handshake = tls.acceptor().accept(stream);
    // The connection reports failures to the client.
    if let Ok(Ok(stream)) = Deadline::after(HANDSHAKE_TIMEOUT).bound(handshake).await {
        requests(stream, router, arrived).await;
    }
}

async fn requests(stream: impl AsyncRead + AsyncWrite + Unpin + Send, router: Router, arrived: CancellationToken) {
    let service = service_fn(|request| {
        arrived.cancel();
        router.clone().call(request)
    });
    // One request per connection: probes arrive only every few seconds.
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // The connection reports failures to the client.
    let _ = Deadline::after(CONNECTION_TIMEOUT).bound(served).await;
}
