//! Logs: to standard error, as text or JSON, filtered by `RUST_LOG` or `--log-level`.

use std::io::IsTerminal;

use ecs::span;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::{Layer, Registry};

use super::log_level::{InvalidLogLevel, LogFormat, LogLevel};

/// The layer that writes the log lines, and whether `RUST_LOG` is unreadable. `quiet` logs only errors, unless a level
/// is set.
pub(super) fn layer(
    format: LogFormat,
    level: Option<&LogLevel>,
    quiet: bool,
) -> (Box<dyn Layer<Registry> + Send + Sync>, bool) {
    let default = if quiet { LevelFilter::ERROR } else { LevelFilter::INFO };
    let variable = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let parsed = variable.as_deref().map(str::parse::<LogLevel>);
    let is_unreadable = matches!(parsed, Some(Err(_)));
    let fixed = parsed.and_then(Result::ok);
    let level = fixed.as_ref().or(level);
    let filter = targets(level, default);
    let lines = tracing_subscriber::fmt::layer()
        // Colors only on terminals, not for log collectors.
        .with_ansi(std::io::stderr().is_terminal())
        // With a closed standard error, reporting write errors would panic.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_target(false).with_filter(filter).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
    };
    (lines, is_unreadable)
}

/// The filter of the log lines. Phases are for metrics and traces.
fn targets(level: Option<&LogLevel>, default: LevelFilter) -> Targets {
    let level = level.cloned().unwrap_or_else(|| LogLevel::of_driver(default));
    let targets = level.targets().clone();
    targets.with_target(span::TARGET, LevelFilter::OFF)
}

pub(super) fn warn_unreadable() {
    tracing::warn!("RUST_LOG is invalid and ignored; {}", InvalidLogLevel);
}
