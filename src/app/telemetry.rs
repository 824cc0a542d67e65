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
    let filter = wanted(std::env::var("RUST_LOG").ok())
        .unwrap_or_else(|| Targets::new().with_default(default));
    let lines = tracing_subscriber::fmt::layer()
        // Colours are for terminals, not for log collectors.
        .with_ansi(std::io::stderr().is_terminal())
        // Where nobody reads the log any more, complaining about that would end the process.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry().with(filter);
    match format {
        LogFormat::Text => registry.with(lines.with_target(false)).init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).init(),
    }
}

/// Levels by target, such as `info,diskplugin::cloud=debug`; none when nothing readable is said.
fn wanted(variable: Option<String>) -> Option<Targets> {
    variable.filter(|text| !text.is_empty())?.parse().ok()
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_may_be_said_for_all_and_for_one_target() {
        let filter = wanted(Some("warn,diskplugin::cloud=debug".to_owned())).unwrap();
        assert!(filter.would_enable("diskplugin::cloud::retry", &Level::DEBUG));
        assert!(!filter.would_enable("diskplugin::disk", &Level::INFO));
    }

    #[test]
    fn nothing_and_nonsense_leave_the_default() {
        for text in [None, Some(""), Some("diskplugin=loud")] {
            assert_eq!(wanted(text.map(str::to_owned)), None, "{text:?}");
        }
    }
}
