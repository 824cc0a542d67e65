//! Logs: to standard error, as text or JSON, filtered by `RUST_LOG`.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::LogFormat;

/// Starts logging. `quiet` logs only errors, unless `RUST_LOG` is set.
pub(super) fn start(format: LogFormat, quiet: bool) {
    let default = if quiet {
        LevelFilter::ERROR
    } else {
        LevelFilter::INFO
    };
    let variable = std::env::var("RUST_LOG")
        .ok()
        .filter(|text| !text.is_empty());
    let filter = variable
        .as_deref()
        .map_or(Some(own_targets(default)), parse);
    let unreadable = filter.is_none();
    let lines = tracing_subscriber::fmt::layer()
        // Colors only on terminals, not for log collectors.
        .with_ansi(std::io::stderr().is_terminal())
        // With a closed standard error, reporting write errors would panic.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    let registry =
        tracing_subscriber::registry().with(filter.unwrap_or_else(|| own_targets(default)));
    match format {
        LogFormat::Text => registry.with(lines.with_target(false)).init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).init(),
    }
    if unreadable {
        tracing::warn!(
            "RUST_LOG is invalid and ignored; allowed: a level, such as debug, or levels by \
             target, such as info,diskplugin::cloud=debug"
        );
    }
}

/// This level for the driver's own log lines, and at most `WARN` for those of libraries.
fn own_targets(level: LevelFilter) -> Targets {
    Targets::new()
        .with_target("diskplugin", level)
        .with_default(level.min(LevelFilter::WARN))
}

/// Parses `RUST_LOG`: a level for the driver's own lines, or levels by target.
fn parse(variable: &str) -> Option<Targets> {
    match variable.parse() {
        Ok(level) => Some(own_targets(level)),
        Err(_) => variable.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn levels_by_target_are_used_unchanged() {
        let filter = parse("warn,diskplugin::cloud=debug").unwrap();
        assert!(filter.would_enable("diskplugin::cloud::retry", &Level::DEBUG));
        assert!(!filter.would_enable("diskplugin::disk", &Level::INFO));
    }

    #[test]
    fn a_bare_level_applies_to_the_drivers_own_lines() {
        let filter = parse("debug").unwrap();
        assert!(filter.would_enable("diskplugin::disk", &Level::DEBUG));
        assert!(!filter.would_enable("h2::codec", &Level::INFO));
        assert!(filter.would_enable("h2::codec", &Level::WARN));
    }

    #[test]
    fn invalid_filters_are_rejected() {
        for text in ["diskplugin=loud", "bogus=foo=bar"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
