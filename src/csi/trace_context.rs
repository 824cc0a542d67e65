//! The W3C trace context of a caller, from the gRPC metadata.

use std::collections::HashMap;

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TraceContextExt;
use opentelemetry::{Context, TraceId};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Makes the span of a call the server span of a trace: a child of the span in `traceparent`, if the caller sent one.
/// Returns the trace ID, or none if the trace is not exported.
pub(super) fn start(span: &Span, method: &str, headers: &http::HeaderMap) -> Option<TraceId> {
    let parent = if headers.contains_key("traceparent") {
        let text = |name: &http::HeaderName| Some((name.to_string(), headers.get(name)?.to_str().ok()?.to_owned()));
        let texts: HashMap<_, _> = headers.keys().filter_map(text).collect();
        TraceContextPropagator::new().extract(&texts)
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
