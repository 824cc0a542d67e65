//! Logs: to standard error, as text or JSON, filtered by `RUST_LOG`.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::cli::LogFormat;

/// Starts logging. `quiet` shows errors only, where `RUST_LOG` does not say otherwise.
pub(super) fn start(format: LogFormat, quiet: bool) {
    let default = if quiet { "error" } else { "info" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Colours are for terminals, not for log collectors.
        .with_ansi(std::io::stderr().is_terminal())
        // Where nobody reads the log any more, complaining about that would end the process.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => lines.with_target(false).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}
