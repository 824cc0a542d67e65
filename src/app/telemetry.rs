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
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => {
            // Colours are for eyes: in a file or a collector they are noise.
            let colours = std::io::stderr().is_terminal();
            lines.with_target(false).with_ansi(colours).init();
        }
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}
