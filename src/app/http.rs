//! `/healthz` and `/readyz` over HTTP, for kubelet's probes and for people.

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

/// How many are answered at once; others wait. Each takes some 10 KiB.
const MOST: usize = 64;

/// How long one may take to say what it asks: who is slow with it must not keep kubelet's probes waiting.
const QUESTION: Duration = Duration::from_secs(1);

/// How long one caller may take for its request and the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long accepting rests when it has failed, as when all file descriptors are taken.
const REST: Duration = Duration::from_millis(100);

/// Takes the address, where one is wanted.
///
/// # Errors
/// When it cannot be had.
pub(crate) async fn bind(address: Option<SocketAddr>) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = address else {
        return Ok(None);
    };
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!(
            "--http-address {address} cannot be had; with the host's network it must be free on the whole machine, so \
             choose another port"
        )
    })?;
    Ok(Some(listener))
}

/// Answers for as long as it is polled; for ever when nobody listens.
pub(crate) async fn serve(listener: Option<TcpListener>, health: Health) -> Infallible {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "serving /healthz and /readyz");
    }
    let (health, slots) = (Arc::new(health), Arc::new(Semaphore::new(MOST)));
    let tasks = Tasks::default();
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                let health = Arc::clone(&health);
                tasks.start(async move {
                    connection(health, stream).await;
                    drop(slot);
                });
            }
            Err(_) => tokio::time::sleep(REST).await,
        }
    }
}

async fn connection(health: Arc<Health>, stream: TcpStream) {
    let service = service_fn(|request: Request<hyper::body::Incoming>| {
        let health = Arc::clone(&health);
        async move {
            let answer = answer(&health, request.method(), request.uri().path()).await;
            Ok::<_, Infallible>(answer)
        }
    });
    // One question a connection: whoever asks does so every few seconds.
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(QUESTION)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // Whatever ends it, its caller sees it.
    let _ = Deadline::after(PATIENCE).bound(served).await;
}

/// The answer. What was not looked at is not told: neither path names a key, a secret or a volume.
async fn answer(health: &Health, method: &Method, path: &str) -> Response<Full<Bytes>> {
    if !matches!(path, "/healthz" | "/readyz") {
        let text = "nothing is here; /healthz tells whether the process lives, /readyz whether it can do its work\n";
        return respond(StatusCode::NOT_FOUND, TEXT, text.to_owned());
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        let text = format!("{method} is not allowed here; GET and HEAD are\n");
        let mut refusal = respond(StatusCode::METHOD_NOT_ALLOWED, TEXT, text);
        let allowed = header::HeaderValue::from_static("GET, HEAD");
        refusal.headers_mut().insert(header::ALLOW, allowed);
        return refusal;
    }
    if path == "/healthz" {
        let socket = health.alive().await;
        let text = format!("{}: {}\n", socket.name, socket.message);
        return respond(status(socket.ok), TEXT, text);
    }
    let readiness = health.ready().await;
    let text = serde_json::to_string(&readiness).expect("texts and booleans become JSON");
    respond(status(readiness.ready), JSON, text + "\n")
}

fn status(ok: bool) -> StatusCode {
    if ok {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

fn respond(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    // A cache would tell of another moment.
    headers.insert(
        header::CACHE_CONTROL,
        header::HeaderValue::from_static("no-store"),
    );
    response
}
