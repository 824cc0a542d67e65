//! The server middleware: every call gets a tracing span, is logged once with its outcome, and is rejected while the
//! server drains. Message bodies are never logged: they contain secrets.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use scopeguard::ScopeGuard;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tonic::service::Routes;
use tonic::{Code, Status};
use tower::Service;
use tower::layer::{LayerFn, layer_fn};
use tracing::Instrument;
use tracing::field::Empty;

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
pub(super) struct RpcService {
    inner: Routes,
    calls: TaskTracker,
    active: Option<Active>,
}

/// Calls are rejected once `calls` is closed, and, except those of Identity, until `active` is set.
pub(super) fn rpc_layer(calls: TaskTracker, active: Option<Active>) -> LayerFn<impl Fn(Routes) -> RpcService + Clone> {
    layer_fn(move |inner| RpcService {
        inner,
        calls: calls.clone(),
        active: active.clone(),
    })
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
        // Counted before the check, so that shutdown waits for every admitted call.
        let running = self.calls.token();
        if self.calls.is_closed() {
            return reject(Failure::ShuttingDown, "the driver is shutting down");
        }
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
            let start = Instant::now();
            let elapsed_ms = || u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
            let cancelled = scopeguard::guard((), |()| {
                tracing::warn!(
                    rpc.method = method,
                    elapsed_ms = elapsed_ms(),
                    "the caller cancelled {method}; steps that it began continue"
                );
                record_end(CANCELLED, Some("the caller cancelled the call"));
            });
            let mut response = routes.call(request).await?;
            ScopeGuard::into_inner(cancelled);
            let status = Status::from_header_map(response.headers());
            let named = status.as_ref().and_then(status::with_name_of_code);
            // A message that does not fit into a header is left unchanged.
            if let Some(Err(error)) = named.map(|named| named.add_header(response.headers_mut())) {
                tracing::debug!(error = error.message(), "cannot add a name to the failure");
            }
            // A failed unary call has its status in the headers; a success has none there.
            let status = Status::from_header_map(response.headers());
            log(&method, elapsed_ms(), status.filter(|status| status.code() != Code::Ok));
            drop(running);
            Ok(response)
        };
        Box::pin(call.instrument(span))
    }
}

/// Records a field in the span of the running call. Only for fields that [`RpcService`] declares.
pub(crate) fn record(field: &str, value: impl std::fmt::Display) {
    tracing::Span::current().record(field, tracing::field::display(value));
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

fn log(method: &str, elapsed_ms: u64, failed: Option<Status>) {
    match failed {
        Some(status) => {
            tracing::warn!(
                rpc.method = method,
                rpc.code = ?status.code(),
                elapsed_ms,
                "{method} failed: {}",
                status.message()
            );
            return record_end(&format!("{:?}", status.code()), Some(status.message()));
        }
        None if matches!(method, "Probe" | "NodeGetCapabilities" | "NodeGetVolumeStats") => {
            tracing::debug!(rpc.method = method, elapsed_ms, "{method} done");
        }
        None => tracing::info!(rpc.method = method, elapsed_ms, "{method} done"),
    }
    record_end(OK, None);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tower::Layer;

    use super::*;

    #[tokio::test]
    async fn a_running_call_finishes_and_a_new_one_is_rejected() {
        let calls = TaskTracker::new();
        let mut service = rpc_layer(calls.clone(), None).layer(Routes::default());
        let running = service.call(http::Request::new(Body::empty()));
        calls.close();
        let finish = tokio::time::timeout(Duration::from_millis(20), calls.wait());
        assert!(finish.await.is_err());
        let Ok(rejected) = service.call(http::Request::new(Body::empty())).await;
        let rejected = Status::from_header_map(rejected.headers()).unwrap();
        assert_eq!(rejected.code(), Code::Unavailable);
        drop(running);
        calls.wait().await;
    }
}
