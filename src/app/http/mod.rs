//! The HTTP port: probes for kubelet, metrics, histories of volumes, and the status page.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use hyper::Request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

pub(crate) use self::access::Authorizer;
use self::connections::{Connections, Place};
pub(crate) use self::disk_state::CloudDisks;
pub(crate) use self::site::{Page, Site};
use self::tls::Tls;
use super::InvalidSettings;
use crate::base::Deadline;
use crate::cli::{HttpArgs, HttpAuthorization, PageArgs};
use crate::cluster::Cluster;
use crate::cluster::token_review::TokenReviewer;

mod access;
mod connections;
mod disk_state;
mod site;
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

/// Binds the address, if one is set.
pub(crate) async fn bind(args: &HttpArgs) -> anyhow::Result<Option<Port>> {
    let Some(address) = args.http_address else {
        return Ok(None);
    };
    let tls = match (&args.http_tls_cert_file, &args.http_tls_key_file) {
        (Some(certificate), Some(key)) => Some(Tls::new(certificate.clone(), key.clone())?),
        _ => None,
    };
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on --http-address {address}; with hostNetwork the port must be free on the whole machine: \
             choose another port"
        )
    })?;
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, tls = tls.is_some(), "serving /healthz, /readyz and /metrics");
    }
    Ok(Some(Port {
        listener,
        tls: tls.map(Arc::new),
    }))
}

/// Who may read the pages of a role that may use the API server.
pub(crate) async fn authorizer(args: &PageArgs) -> Result<Authorizer, InvalidSettings> {
    match args.http_authorization {
        HttpAuthorization::None => Ok(Authorizer::default()),
        HttpAuthorization::TokenReview => {
            let cluster = Cluster::new(args.http_kubeconfig.as_deref()).await;
            let cluster = cluster.map_err(|error| {
                let error = crate::base::error_chain(&error);
                let flag = "--http-authorization token-review";
                InvalidSettings(vec![format!("{flag}: requires the API server: {error}")])
            })?;
            Ok(Authorizer::new(TokenReviewer::new(cluster)))
        }
    }
}

/// The limit of pages at the same time, other than the probes.
pub(crate) fn page_limit() -> Semaphore {
    Semaphore::new(site::MAX_PAGES)
}

/// Serves requests; without a port, it never returns.
pub(crate) async fn serve(port: Option<&Port>, site: Site) -> Infallible {
    let Some(Port { listener, tls }) = port else {
        return std::future::pending().await;
    };
    let (site, connections) = (Arc::new(site), Connections::default());
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let (site, tls) = (Arc::clone(&site), tls.clone());
                let serve = |place| async move { accept(site, tls.as_deref(), stream, place).await };
                connections.serve(serve).await;
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn accept(site: Arc<Site>, tls: Option<&Tls>, stream: TcpStream, place: Place) {
    let Some(tls) = tls else {
        return connection(site, stream, place).await;
    };
    let handshake = tls.acceptor().accept(stream);
    // The connection reports failures to the client.
    if let Ok(Ok(stream)) = Deadline::after(HANDSHAKE_TIMEOUT).bound(handshake).await {
        connection(site, stream, place).await;
    }
}

async fn connection(site: Arc<Site>, stream: impl AsyncRead + AsyncWrite + Unpin + Send, place: Place) {
    let service = service_fn(|request: Request<hyper::body::Incoming>| {
        place.leave();
        let site = Arc::clone(&site);
        async move {
            let (head, _) = request.into_parts();
            let response = site.respond(&head.method, head.uri.path(), &head.headers);
            Ok::<_, Infallible>(response.await)
        }
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
