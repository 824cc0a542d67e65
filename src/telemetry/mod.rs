//! Reports of the process about itself: log lines, metrics, histories of volumes and traces. All but the log lines
//! are derived from the spans of calls and their phases ([`crate::base::phase`]).

use ecs::span;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterFn, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub(crate) use self::calls::Telemetry;
pub use self::log::{LogFormat, LogLevel};
pub(crate) use self::metrics::CallMetrics;
pub(crate) use self::timeline::{Summary, Timelines};
use self::trace::Traces;

mod calls;
pub mod catalog;
mod fields;
mod log;
mod metrics;
mod timeline;
mod trace;

/// Starts logging, and recording into `telemetry` and the traces. Returns the traces, which must be shut down.
pub(crate) fn start(
    format: LogFormat,
    level: Option<&LogLevel>,
    quiet: bool,
    telemetry: Option<&Telemetry>,
) -> Option<Traces> {
    let (lines, is_unreadable) = log::layer(format, level, quiet);
    let calls = telemetry.map(|telemetry| telemetry.clone().with_filter(calls_and_warnings()));
    let started = telemetry.map(|_| Traces::from_environment()).transpose();
    let (traces, failure) = match started {
        Ok(traces) => (traces.flatten(), None),
        Err(error) => (None, Some(error)),
    };
    let exported = traces.as_ref().map(|traces| traces.layer().with_filter(spans()));
    tracing_subscriber::registry()
        .with(lines)
        .with(calls)
        .with(exported)
        .init();
    if is_unreadable {
        tracing::warn!("RUST_LOG is invalid and ignored; {}", self::log::InvalidLogLevel);
    }
    if let Some(error) = failure {
        tracing::warn!("traces are not exported: {error}");
    }
    traces
}

/// The spans of calls and phases, and warnings, independent of the log level.
fn calls_and_warnings() -> FilterFn {
    let is_of_call: fn(&Metadata<'_>) -> bool = |metadata| match metadata.is_span() {
        true => [crate::csi::layer::TARGET, span::TARGET].contains(&metadata.target()),
        false => *metadata.level() <= Level::WARN,
    };
    filter_fn(is_of_call).with_max_level_hint(LevelFilter::INFO)
}

/// The spans of calls and phases, independent of the log level.
fn spans() -> Targets {
    Targets::new()
        .with_target(crate::csi::layer::TARGET, LevelFilter::INFO)
        .with_target(span::TARGET, LevelFilter::INFO)
}
