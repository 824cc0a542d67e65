//! Logs: to standard error, as text or JSON, filtered by `RUST_LOG`.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::LogFormat;

/// Starts logging. `quiet` shows errors only, where `RUST_LOG` does not say otherwise.
pub(super) fn start(format: LogFormat, quiet: bool) {
    let default = if quiet {
        LevelFilter::ERROR
    } else {
        LevelFilter::INFO
    };
    let variable = std::env::var("RUST_LOG")
        .ok()
        .filter(|text| !text.is_empty());
    let filter = variable.as_deref().map_or(Some(ours(default)), wanted);
    let unreadable = filter.is_none();
    let lines = tracing_subscriber::fmt::layer()
        // Colours are for terminals, not for log collectors.
        .with_ansi(std::io::stderr().is_terminal())
        // Where nobody reads the log any more, complaining about that would end the process.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry().with(filter.unwrap_or_else(|| ours(default)));
    match format {
        LogFormat::Text => registry.with(lines.with_target(false)).init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).init(),
    }
    if unreadable {
        tracing::warn!(
            "RUST_LOG cannot be read and is ignored; allowed: a level, such as debug, or levels by \
             target, such as info,diskplugin::cloud=debug"
        );
    }
}

/// This level for our own lines. Those of the crates below tell of frames and pools, and only when
/// something is wrong with them.
fn ours(level: LevelFilter) -> Targets {
    Targets::new()
        .with_target("diskplugin", level)
        .with_default(level.min(LevelFilter::WARN))
}

/// What the variable asks for: a level for our own lines, or levels by target for all; none when it
/// cannot be read.
fn wanted(variable: &str) -> Option<Targets> {
    match variable.parse() {
        Ok(level) => Some(ours(level)),
        Err(_) => variable.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn levels_by_target_are_taken_as_they_are() {
        let filter = wanted("warn,diskplugin::cloud=debug").unwrap();
        assert!(filter.would_enable("diskplugin::cloud::retry", &Level::DEBUG));
        assert!(!filter.would_enable("diskplugin::disk", &Level::INFO));
    }

    #[test]
    fn a_bare_level_is_for_our_own_lines() {
        let filter = wanted("debug").unwrap();
        assert!(filter.would_enable("diskplugin::disk", &Level::DEBUG));
        assert!(!filter.would_enable("h2::codec", &Level::INFO));
        assert!(filter.would_enable("h2::codec", &Level::WARN));
    }

    #[test]
    fn nonsense_is_told_from_a_wish() {
        for text in ["diskplugin=loud", "bogus=foo=bar"] {
            assert_eq!(wanted(text), None, "{text:?}");
        }
    }
}
