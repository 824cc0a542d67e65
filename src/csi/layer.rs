//! The edge of the server: every call has a span, is logged once with its outcome, and is refused
//! while the server drains. Bodies are never logged: they carry secrets.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::Instant;
use tonic::{Code, Status};
use tower::{Layer, Service};
use tracing::Instrument;
use tracing::field::Empty;

use super::drain::Drain;
use super::status;
use crate::model::Failure;

/// Wraps the whole server.
#[derive(Debug, Clone)]
pub struct Edge {
    drain: Drain,
}

/// A wrapped service.
#[derive(Debug, Clone)]
pub struct EdgeService<S> {
    inner: S,
    drain: Drain,
}

impl Edge {
    /// An edge that refuses calls while this drains.
    #[must_use]
    pub fn new(drain: Drain) -> Self {
        Self { drain }
    }
}

impl<S> Layer<S> for Edge {
    type Service = EdgeService<S>;

    fn layer(&self, inner: S) -> EdgeService<S> {
        EdgeService {
            inner,
            drain: self.drain.clone(),
        }
    }
}

impl<S, B, R> Service<http::Request<B>> for EdgeService<S>
where
    S: Service<http::Request<B>, Response = http::Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Send + 'static,
    R: Default,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let Some(running) = self.drain.admit() else {
            let refused = status::named(Failure::ShuttingDown, "the driver is shutting down");
            return Box::pin(async move { Ok(refused.into_http()) });
        };
        let path = request.uri().path();
        let method = path.rsplit('/').next().unwrap_or(path).to_owned();
        let span = tracing::info_span!(
            "rpc",
            rpc.method = method,
            volume.name = Empty,
            snapshot.name = Empty,
            disk.id = Empty,
            snapshot.id = Empty,
            group.name = Empty,
            group.id = Empty,
            node.id = Empty,
            path = Empty,
        );
        // The service that was polled ready is the one to call.
        let ready = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, ready);
        let call = async move {
            let waiting = Waiting::start(method);
            let mut response = inner.call(request).await?;
            name(&mut response);
            waiting.answered(&response);
            drop(running);
            Ok(response)
        };
        Box::pin(call.instrument(span))
    }
}

/// Tells, in the log lines of the running call, what it is about. Only for the fields of the span
/// that [`Edge`] opens.
pub(crate) fn about(field: &str, value: impl std::fmt::Display) {
    tracing::Span::current().record(field, tracing::field::display(value));
}

/// A call whose caller has not been answered.
#[derive(Debug)]
struct Waiting {
    method: String,
    start: Instant,
    answered: bool,
}

impl Waiting {
    fn start(method: String) -> Self {
        Self {
            method,
            start: Instant::now(),
            answered: false,
        }
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn answered<R>(mut self, response: &http::Response<R>) {
        self.answered = true;
        log(&self.method, self.elapsed_ms(), response);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.answered {
            let (method, elapsed_ms) = (&self.method, self.elapsed_ms());
            tracing::warn!(
                rpc.method = method,
                elapsed_ms,
                "the caller gave {method} up; what it began goes on"
            );
        }
    }
}

/// Gives a failure that was made without one the name of its code: each has one for its caller.
fn name<R>(response: &mut http::Response<R>) {
    let status = Status::from_header_map(response.headers());
    let named = status.as_ref().and_then(status::with_name);
    // A text that no header can hold stays as it is.
    if let Some(Err(error)) = named.map(|named| named.add_header(response.headers_mut())) {
        tracing::debug!(error = error.message(), "the failure stays without a name");
    }
}

fn log<R>(method: &str, elapsed_ms: u64, response: &http::Response<R>) {
    // A failed unary call has its status in the headers; a success has none there.
    match Status::from_header_map(response.headers()) {
        Some(status) if status.code() != Code::Ok => tracing::warn!(
            rpc.method = method,
            rpc.code = ?status.code(),
            elapsed_ms,
            "{method} failed: {}",
            status.message()
        ),
        _ if matches!(
            method,
            "Probe" | "NodeGetCapabilities" | "NodeGetVolumeStats"
        ) =>
        {
            tracing::debug!(rpc.method = method, elapsed_ms, "{method} done");
        }
        _ => tracing::info!(rpc.method = method, elapsed_ms, "{method} done"),
    }
}
