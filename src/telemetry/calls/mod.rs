//! The subscriber layer that measures calls and phases, and records them in the histories of volumes.

use std::sync::Arc;

use ecs::span;
use tokio::time::Instant;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::fields::Fields;
use super::metrics::CallMetrics;
use super::timeline::{RecordedCall, Timelines};
use crate::base::SystemClock;
use crate::csi::layer as rpc;

/// The code of a cloud call that ended without a response.
const CANCELLED: &str = "Cancelled";

/// The module whose warnings repeat the message of the call.
const LAYER_TARGET: &str = "diskplugin::csi::layer";

/// The measurements and histories of the calls of this process, recorded from their spans. Clones share the state.
#[derive(Debug, Clone)]
pub(crate) struct Telemetry {
    pub(crate) metrics: CallMetrics,
    pub(crate) timelines: Arc<Timelines>,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            metrics: CallMetrics::default(),
            timelines: Arc::new(Timelines::new(Arc::new(SystemClock))),
        }
    }
}

/// The state of a span of interest.
#[derive(Debug)]
enum State {
    Rpc(Rpc),
    Step(Box<Running>),
}

#[derive(Debug)]
struct Rpc {
    method: String,
    call: Arc<RecordedCall>,
    message: Option<String>,
    trace_id: Option<String>,
    ended: bool,
}

/// A running phase or cloud call.
#[derive(Debug)]
struct Running {
    /// The phase or action.
    name: String,
    is_cloud_call: bool,
    began: Instant,
    /// The call that it is part of, and its method.
    call: Option<(Arc<RecordedCall>, String)>,
    trace_id: Option<String>,
    step: Option<usize>,
    code: Option<String>,
    request_id: Option<String>,
    is_throttled: bool,
}

impl Telemetry {
    fn start_rpc(&self, fields: &Fields) -> State {
        let method = fields.get(rpc::METHOD_FIELD).unwrap_or_default();
        let method = self.metrics.method(method);
        self.metrics.rpc_started(&method);
        State::Rpc(Rpc {
            call: self.timelines.start(&method),
            method,
            message: None,
            trace_id: None,
            ended: false,
        })
    }

    fn record_rpc(&self, rpc: &mut Rpc, fields: &Fields) {
        for (name, value) in &fields.0 {
            match *name {
                rpc::MESSAGE_FIELD => rpc.message = Some(value.clone()),
                rpc::TRACE_ID_FIELD => rpc.trace_id = Some(value.clone()),
                rpc::CODE_FIELD => self.end_rpc(rpc, value),
                "disk.id" => self.timelines.assign_disk(&rpc.call, value),
                "volume.name" => self.timelines.assign_name(&rpc.call, value),
                "node.id" => rpc.call.set_node(value),
                _ => {}
            }
        }
    }

    fn end_rpc(&self, rpc: &mut Rpc, code: &str) {
        if std::mem::replace(&mut rpc.ended, true) {
            return;
        }
        let elapsed = rpc.call.began.elapsed();
        let trace_id = rpc.trace_id.as_deref();
        self.metrics.rpc_ended(&rpc.method, code, elapsed, trace_id);
        self.timelines.end(&rpc.call, code, rpc.message.take(), elapsed);
    }

    fn end_step(&self, step: &Running) {
        let elapsed = step.began.elapsed();
        let metrics = &self.metrics;
        if step.is_cloud_call {
            let ids = (step.request_id.as_deref(), step.trace_id.as_deref());
            // Dropped at the deadline, or by a caller that gave up.
            let code = step.code.as_deref().unwrap_or(CANCELLED);
            metrics.cloud_call_ended(&step.name, code, step.is_throttled, elapsed, ids);
        } else {
            let method = step.call.as_ref().map(|(_, method)| method.as_str());
            metrics.phase_ended(method, &step.name, elapsed);
        }
        if let (Some((call, _)), Some(index)) = (&step.call, step.step) {
            let cancelled = step.is_cloud_call.then(|| CANCELLED.to_owned());
            let code = step.code.clone().or(cancelled);
            let failure = code.filter(|code| code != span::OK);
            call.end_step(index, elapsed, failure, step.request_id.clone());
        }
    }
}

impl<S> Layer<S> for Telemetry
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let is_cloud_call = span.name() == span::CLOUD_CALL_SPAN;
        let state = match span.name() {
            rpc::RPC_SPAN => self.start_rpc(&fields),
            span::POLL_SPAN => {
                let size = fields.get(span::SIZE_FIELD).and_then(|size| size.parse().ok());
                let action = fields.get(span::ACTION_FIELD).unwrap_or_default();
                self.metrics.poll_sent(action, size.unwrap_or(1.0));
                return;
            }
            span::PHASE_SPAN | span::CLOUD_CALL_SPAN => {
                let field = match is_cloud_call {
                    true => span::ACTION_FIELD,
                    false => span::PHASE_FIELD,
                };
                let name = fields.get(field).unwrap_or_default().to_owned();
                let call = span
                    .scope()
                    .skip(1)
                    .find_map(|outer| match outer.extensions().get::<State>()? {
                        State::Rpc(rpc) => {
                            let call = (Arc::clone(&rpc.call), rpc.method.clone());
                            Some((call, rpc.trace_id.clone()))
                        }
                        State::Step(_) => None,
                    });
                let (call, trace_id) = call.unzip();
                let step = call.as_ref().and_then(|(call, _)| call.start_step(&name));
                State::Step(Box::new(Running {
                    name,
                    is_cloud_call,
                    began: Instant::now(),
                    call,
                    trace_id: trace_id.flatten(),
                    step,
                    code: None,
                    request_id: None,
                    is_throttled: false,
                }))
            }
            _ => return,
        };
        span.extensions_mut().insert(state);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        let Some(state) = extensions.get_mut::<State>() else {
            return;
        };
        let mut fields = Fields::default();
        values.record(&mut fields);
        match state {
            State::Rpc(rpc) => self.record_rpc(rpc, &fields),
            State::Step(step) => {
                for (name, value) in &fields.0 {
                    match *name {
                        span::CODE_FIELD => step.code = Some(value.clone()),
                        span::REQUEST_ID_FIELD => step.request_id = Some(value.clone()),
                        span::THROTTLED_FIELD => step.is_throttled = value == "true",
                        _ => {}
                    }
                }
            }
        }
    }

    /// Warnings of a call are notes in its history.
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        if *metadata.level() > Level::WARN || metadata.target() == LAYER_TARGET {
            return;
        }
        let Some(mut scope) = context.event_scope(event) else {
            return;
        };
        let call = scope.find_map(|span| match span.extensions().get::<State>()? {
            State::Rpc(rpc) if !rpc.ended => Some(Arc::clone(&rpc.call)),
            State::Rpc(_) | State::Step(_) => None,
        });
        if let Some(call) = call {
            let mut fields = Fields::default();
            event.record(&mut fields);
            call.note(fields.get("message").unwrap_or_default());
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else {
            return;
        };
        match span.extensions_mut().remove::<State>() {
            Some(State::Step(step)) => self.end_step(&step),
            // A call that was dropped before it was polled.
            Some(State::Rpc(mut rpc)) => self.end_rpc(&mut rpc, "Unknown"),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
