//! Spans of the client's calls and waits. The subscriber of an application derives durations, metrics and traces from
//! them; without a subscriber they cost nothing.

use std::future::Future;

use tracing::field::{Empty, display};
use tracing::instrument::{Instrument, Instrumented};
use tracing::{Span, info_span};

/// The target of the spans. Log lines do not show them.
pub const TARGET: &str = "ecs::span";

/// Name of the span of a phase, and its field with the name of the phase.
pub const PHASE_SPAN: &str = "phase";
pub const PHASE_FIELD: &str = "phase";

/// The phase in which a call waits until the rate limit of the cloud permits it.
pub const RATE_LIMIT: &str = "rate_limit";
/// The phase in which a call waits for the cloud to finish an operation, by polling.
pub const POLL: &str = "poll";

/// Name of the span of an attempt of a cloud call.
pub const CLOUD_CALL_SPAN: &str = "cloud_call";
pub const ACTION_FIELD: &str = "cloud.action";
pub const CODE_FIELD: &str = "cloud.code";
pub const REQUEST_ID_FIELD: &str = "cloud.request_id";
pub const THROTTLED_FIELD: &str = "cloud.throttled";

/// Name of the span of a poll, and its field with the number of resources.
pub const POLL_SPAN: &str = "poll_batch";
pub const SIZE_FIELD: &str = "size";

/// Attributes a future to a phase of the current call.
pub fn in_phase<F: Future>(future: F, name: &'static str) -> Instrumented<F> {
    future.instrument(info_span!(target: TARGET, "phase", otel.name = name, phase = name))
}

/// The span of one attempt of a cloud call.
#[must_use]
pub fn cloud_call(action: &'static str) -> Span {
    info_span!(
        target: TARGET,
        "cloud_call",
        otel.name = action,
        otel.kind = "client",
        cloud.action = action,
        cloud.code = Empty,
        cloud.request_id = Empty,
        cloud.throttled = Empty,
        otel.status_code = Empty,
    )
}

/// The code of an attempt that succeeded. A span that ends without a code is of an attempt that was cancelled.
pub const OK: &str = "OK";

/// The span of a poll for this number of resources.
#[must_use]
pub fn poll_batch(action: &'static str, size: usize) -> Span {
    info_span!(target: TARGET, "poll_batch", cloud.action = action, size)
}

/// Records the RequestId of the response in the span of the attempt, which is the current one.
pub fn record_request_id(id: &str) {
    Span::current().record(REQUEST_ID_FIELD, display(id));
}
