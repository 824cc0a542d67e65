//! The W3C trace context of a caller, from the gRPC metadata.

use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry::{Context, TraceId};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

struct Headers<'a>(&'a http::HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

/// Makes the span of a call the server span of a trace: a child of the span in `traceparent`, if the caller sent one.
/// Returns the trace ID, or none if the trace is not exported.
pub(super) fn start(span: &Span, method: &str, headers: &http::HeaderMap) -> Option<TraceId> {
    let parent = if headers.contains_key("traceparent") {
        TraceContextPropagator::new().extract(&Headers(headers))
    } else {
        Context::new()
    };
    // Fails without a subscriber for traces. The fields for traces, which log lines show, are then not set.
    span.set_parent(parent).ok()?;
    span.record("otel.name", method);
    span.record("otel.kind", "server");
    let context = span.context();
    let context = context.span().span_context().clone();
    // Of a trace that is not sampled, the collector has nothing to which the ID could refer.
    let is_exported = context.is_valid() && context.is_sampled();
    is_exported.then(|| context.trace_id())
}
