//! `/healthz` and `/readyz` over HTTP, for kubelet's probes and operators.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::health::Health;
use crate::base::{Deadline, Tasks};

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// Maximum number of parallel connections, of about 10 KiB each; others wait.
const MAX_CONNECTIONS: usize = 64;

/// Timeout for the request headers, so that slow clients do not block kubelet's probes.
const HEADER_TIMEOUT: Duration = Duration::from_secs(1);

/// Timeout of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after a failed accept, for example when the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Binds the address, if one is set.
pub(crate) async fn bind(address: Option<SocketAddr>) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = address else {
        return Ok(None);
    };
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on --http-address {address}; with hostNetwork the port must be free on the whole machine: \
             choose another port"
        )
    })?;
    Ok(Some(listener))
}

/// Serves requests; without a listener, it never returns.
pub(crate) async fn serve(listener: Option<TcpListener>, health: Health) -> Infallible {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "serving /healthz and /readyz");
    }
    let (health, slots) = (Arc::new(health), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
    let tasks = Tasks::default();
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                let health = Arc::clone(&health);
                tasks.spawn(async move {
                    connection(health, stream).await;
                    drop(slot);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn connection(health: Arc<Health>, stream: TcpStream) {
    let service = service_fn(|request: Request<hyper::body::Incoming>| {
        let health = Arc::clone(&health);
        async move {
            let response = respond(&health, request.method(), request.uri().path()).await;
            Ok::<_, Infallible>(response)
        }
    });
    // One request per connection: probes arrive only every few seconds.
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // The client sees any failure itself.
    let _ = Deadline::after(CONNECTION_TIMEOUT).bound(served).await;
}

/// The response. It never contains a key, a secret or the name of a volume.
async fn respond(health: &Health, method: &Method, path: &str) -> Response<Full<Bytes>> {
    if !matches!(path, "/healthz" | "/readyz") {
        let text = "not found; /healthz is the liveness check, /readyz the readiness check\n";
        return response(StatusCode::NOT_FOUND, TEXT, text.to_owned());
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        let text = format!("{method} is not allowed; use GET or HEAD\n");
        let mut response = response(StatusCode::METHOD_NOT_ALLOWED, TEXT, text);
        let allowed = header::HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(header::ALLOW, allowed);
        return response;
    }
    if path == "/healthz" {
        let socket = health.alive().await;
        let text = format!("{}: {}\n", socket.name, socket.message);
        return response(status(socket.ok), TEXT, text);
    }
    let readiness = health.ready().await;
    let text = serde_json::to_string(&readiness).expect("strings and booleans serialize");
    response(status(readiness.ready), JSON, text + "\n")
}

fn status(ok: bool) -> StatusCode {
    if ok {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    // A cached response would be outdated.
    headers.insert(
        header::CACHE_CONTROL,
        header::HeaderValue::from_static("no-store"),
    );
    response
}
