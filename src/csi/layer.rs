//! The server middleware: every call gets a tracing span, is logged once with its outcome, and is rejected while the
//! server drains. Message bodies are never logged: they contain secrets.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::time::Instant;
use tonic::body::Body;
use tonic::service::Routes;
use tonic::{Code, Status};
use tower::{Layer, Service};
use tracing::Instrument;
use tracing::field::Empty;

use super::drain::Drain;
use super::{status, trace_context};
use crate::model::Failure;

/// Target and name of the span of a call, and its fields. The code is recorded last, when the call ends.
pub const TARGET: &str = "diskplugin::rpc";
pub const RPC_SPAN: &str = "rpc";
pub const METHOD_FIELD: &str = "rpc.method";
pub const CODE_FIELD: &str = "rpc.code";
pub const MESSAGE_FIELD: &str = "rpc.message";
pub const TRACE_ID_FIELD: &str = "trace_id";

/// The codes of calls that succeeded, and of calls without a response.
pub const OK: &str = "OK";
const CANCELLED: &str = "Cancelled";

/// The path of the Identity service, which a standby serves.
const IDENTITY: &str = "/csi.v1.Identity/";

type ResponseFuture = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

/// The services of a standby that has become the leader. Clones share the state.
#[derive(Debug, Clone, Default)]
pub struct Active(Arc<OnceLock<Routes>>);

impl Active {
    /// From now on, the first services no longer receive calls.
    pub fn set(&self, routes: Routes) {
        // Set only once.
        let _ = self.0.set(routes);
    }
}

#[derive(Debug, Clone)]
pub struct RpcLayer {
    drain: Drain,
    active: Option<Active>,
}

#[derive(Debug, Clone)]
pub struct RpcService {
    inner: Routes,
    drain: Drain,
    active: Option<Active>,
}

impl RpcLayer {
    /// Calls are rejected while `drain` drains, and, except those of Identity, until `active` is set.
    #[must_use]
    pub fn new(drain: Drain, active: Option<Active>) -> Self {
        Self { drain, active }
    }
}

impl Layer<Routes> for RpcLayer {
    type Service = RpcService;

    fn layer(&self, inner: Routes) -> RpcService {
        RpcService {
            inner,
            drain: self.drain.clone(),
            active: self.active.clone(),
        }
    }
}

impl RpcService {
    /// The services for this call; `None` if they do not exist yet. They are always ready.
    fn routes(&self, path: &str) -> Option<Routes> {
        let Some(Active(active)) = &self.active else {
            return Some(self.inner.clone());
        };
        let standby = path.starts_with(IDENTITY).then_some(&self.inner);
        active.get().or(standby).cloned()
    }
}

fn reject(failure: Failure, message: &str) -> ResponseFuture {
    let rejected = status::with_advice(failure, message);
    Box::pin(async move { Ok(rejected.into_http()) })
}

impl Service<http::Request<Body>> for RpcService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<http::Request<Body>>::poll_ready(&mut self.inner, context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let Some(running) = self.drain.admit() else {
            return reject(Failure::ShuttingDown, "the driver is shutting down");
        };
        let Some(mut routes) = self.routes(request.uri().path()) else {
            return reject(Failure::ShuttingDown, "this replica of the controller is a standby");
        };
        let path = request.uri().path();
        let method = path.rsplit('/').next().unwrap_or(path).to_owned();
        let span = tracing::info_span!(
            target: TARGET,
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
            trace_id = Empty,
            rpc.code = Empty,
            rpc.message = Empty,
            otel.name = Empty,
            otel.kind = Empty,
            otel.status_code = Empty,
        );
        if let Some(trace_id) = trace_context::start(&span, &method, request.headers()) {
            span.record(TRACE_ID_FIELD, tracing::field::display(trace_id));
        }
        let call = async move {
            let pending = PendingCall::start(method);
            let mut response = routes.call(request).await?;
            add_failure_name(&mut response);
            pending.finish(&response);
            drop(running);
            Ok(response)
        };
        Box::pin(call.instrument(span))
    }
}

/// Records a field in the span of the running call. Only for fields that [`RpcLayer`] declares.
pub(crate) fn record(field: &str, value: impl std::fmt::Display) {
    tracing::Span::current().record(field, tracing::field::display(value));
}

/// A call without a response yet.
#[derive(Debug)]
struct PendingCall {
    method: String,
    start: Instant,
    finished: bool,
}

impl PendingCall {
    fn start(method: String) -> Self {
        Self {
            method,
            start: Instant::now(),
            finished: false,
        }
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn finish<R>(mut self, response: &http::Response<R>) {
        self.finished = true;
        // A failed unary call has its status in the headers; a success has none there.
        let status = Status::from_header_map(response.headers());
        log(&self.method, self.elapsed_ms(), status.as_ref());
        match status.filter(|status| status.code() != Code::Ok) {
            Some(status) => record_end(&format!("{:?}", status.code()), Some(status.message())),
            None => record_end(OK, None),
        }
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if !self.finished {
            let (method, elapsed_ms) = (&self.method, self.elapsed_ms());
            tracing::warn!(
                rpc.method = method,
                elapsed_ms,
                "the caller cancelled {method}; steps that it began continue"
            );
            record_end(CANCELLED, Some("the caller cancelled the call"));
        }
    }
}

/// Adds the failure name of its code to a status without one.
fn add_failure_name<R>(response: &mut http::Response<R>) {
    let status = Status::from_header_map(response.headers());
    let named = status.as_ref().and_then(status::with_name_of_code);
    // A message that does not fit into a header is left unchanged.
    if let Some(Err(error)) = named.map(|named| named.add_header(response.headers_mut())) {
        tracing::debug!(error = error.message(), "cannot add a name to the failure");
    }
}

/// Records the outcome in the span of the call, for the subscriber: the name of the gRPC code, and the message of a
/// failure.
fn record_end(code: &str, message: Option<&str>) {
    let span = tracing::Span::current();
    if let Some(message) = message {
        span.record(MESSAGE_FIELD, message);
        span.record("otel.status_code", "ERROR");
    }
    span.record(CODE_FIELD, code);
}

fn log(method: &str, elapsed_ms: u64, status: Option<&Status>) {
    match status {
        Some(status) if status.code() != Code::Ok => tracing::warn!(
            rpc.method = method,
            rpc.code = ?status.code(),
            elapsed_ms,
            "{method} failed: {}",
            status.message()
        ),
        _ if matches!(method, "Probe" | "NodeGetCapabilities" | "NodeGetVolumeStats") => {
            tracing::debug!(rpc.method = method, elapsed_ms, "{method} done");
        }
        _ => tracing::info!(rpc.method = method, elapsed_ms, "{method} done"),
    }
}
