//! Logs: to standard error, as text or JSON, filtered by `RUST_LOG` or `--log-level`.

use std::io::IsTerminal;
use std::str::FromStr;

use ecs::span;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::{Layer, Registry};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// Human-readable lines.
    #[default]
    Text,
    /// One JSON object per line, for log collectors.
    Json,
}

/// The lines that are logged: a level for the driver's own lines, or levels by target.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLevel(Targets);

/// Error of parsing a [`LogLevel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("allowed: error, warn, info, debug, trace, off, or levels by target, such as info,ecs=debug")]
pub struct InvalidLogLevel;

impl LogLevel {
    /// This level for the driver's own log lines, and at most `WARN` for those of libraries.
    pub fn of_driver(level: LevelFilter) -> Self {
        let targets = Targets::new()
            .with_targets(["diskplugin", "ecs", "fake_ecs"].map(|own| (own, level)))
            .with_default(level.min(LevelFilter::WARN));
        Self(targets)
    }
}

impl FromStr for LogLevel {
    type Err = InvalidLogLevel;

    fn from_str(text: &str) -> Result<Self, InvalidLogLevel> {
        if let Some(level) = level(text) {
            return Ok(Self::of_driver(level));
        }
        // `Targets` accepts any word as a target at level trace, which disables the logs of all other targets.
        let is_valid = |item: &str| item.contains('=') || level(item).is_some();
        let is_valid = text.split(',').all(is_valid);
        let targets = is_valid.then(|| text.parse().ok()).flatten();
        targets.map(Self).ok_or(InvalidLogLevel)
    }
}

/// A level by its name. The library parses an empty text as `error`.
fn level(text: &str) -> Option<LevelFilter> {
    let text = text.trim();
    text.parse().ok().filter(|_| !text.is_empty())
}

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
    let own = LogLevel::of_driver(default);
    // Phases are for metrics and traces.
    let filter = level
        .unwrap_or(&own)
        .0
        .clone()
        .with_target(span::TARGET, LevelFilter::OFF);
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

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    fn targets(text: &str) -> Targets {
        text.parse::<LogLevel>().unwrap().0
    }

    #[test]
    fn levels_by_target_are_used_unchanged() {
        let filter = targets("warn,ecs=debug");
        assert!(filter.would_enable("ecs::retry", &Level::DEBUG));
        assert!(!filter.would_enable("diskplugin::disk", &Level::INFO));
    }

    #[test]
    fn a_bare_level_applies_to_the_drivers_own_lines() {
        let filter = targets("debug");
        for own in ["diskplugin::disk", "ecs::retry", "fake_ecs::http"] {
            assert!(filter.would_enable(own, &Level::DEBUG), "{own}");
        }
        assert!(!filter.would_enable("h2::codec", &Level::INFO));
        assert!(filter.would_enable("h2::codec", &Level::WARN));
    }

    #[test]
    fn invalid_levels_are_rejected() {
        for text in ["", "loud", "debgu", "info,loud", "diskplugin=loud", "bogus=foo=bar"] {
            assert_eq!(text.parse::<LogLevel>(), Err(InvalidLogLevel), "{text:?}");
        }
    }
}
