//! The W3C trace context of a caller, from the gRPC metadata.

use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::layer::TRACE_ID_FIELD;

struct Headers<'a>(&'a http::HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

/// Makes the span a child of the span in `traceparent`, if the caller sent one, and records its trace ID. Without
/// traces, it has no effect.
pub(super) fn start(span: &Span, headers: &http::HeaderMap) {
    if headers.contains_key("traceparent") {
        let context = TraceContextPropagator::new().extract(&Headers(headers));
        // Fails without a subscriber for traces.
        let _ = span.set_parent(context);
    }
    let context = span.context();
    let trace_id = context.span().span_context().trace_id();
    if trace_id != opentelemetry::TraceId::INVALID {
        span.record(TRACE_ID_FIELD, tracing::field::display(trace_id));
    }
}
