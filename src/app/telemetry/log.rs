//! Logs: to standard error, as text or JSON, filtered by `RUST_LOG` or `--log-level`, which can change while the process
//! runs.

use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::{Layer, Registry, reload};

use crate::base::phase;
use crate::cli::{LogArgs, LogFormat, LogLevel};

/// The log level of this process. Clones share it.
#[derive(Debug, Clone, Default)]
pub(in crate::app) struct LogFilter(Arc<OnceLock<Filter>>);

#[derive(Debug)]
struct Filter {
    handle: reload::Handle<Targets, Registry>,
    /// The level without `--log-level`.
    default: LevelFilter,
    /// Whether `RUST_LOG` determines the level.
    is_fixed: bool,
}

impl LogFilter {
    /// Whether `RUST_LOG` determines the level.
    pub(in crate::app) fn is_fixed(&self) -> bool {
        self.0.get().is_some_and(|filter| filter.is_fixed)
    }

    /// Uses this value of `--log-level`, unless `RUST_LOG` is set.
    pub(in crate::app) fn set(&self, level: Option<&LogLevel>) {
        let Some(filter) = self.0.get().filter(|filter| !filter.is_fixed) else {
            return;
        };
        // It fails only if the subscriber is gone.
        let _ = filter.handle.reload(targets(level, filter.default));
    }
}

/// The layer that writes the log lines, and whether `RUST_LOG` is unreadable. `quiet` logs only errors, unless a level is
/// set.
pub(super) fn layer(
    args: &LogArgs,
    quiet: bool,
    filter: &LogFilter,
) -> (Box<dyn Layer<Registry> + Send + Sync>, bool) {
    let default = if quiet {
        LevelFilter::ERROR
    } else {
        LevelFilter::INFO
    };
    let variable = std::env::var("RUST_LOG")
        .ok()
        .filter(|text| !text.is_empty());
    let parsed = variable.as_deref().map(str::parse::<LogLevel>);
    let is_unreadable = matches!(parsed, Some(Err(_)));
    let fixed = parsed.and_then(Result::ok);
    let level = fixed.as_ref().or(args.log_level.as_ref());
    let (reloadable, handle) = reload::Layer::new(targets(level, default));
    // It is set once, because a process has one log.
    let _ = filter.0.set(Filter {
        handle,
        default,
        is_fixed: fixed.is_some(),
    });
    let lines = tracing_subscriber::fmt::layer()
        // Colors only on terminals, not for log collectors.
        .with_ansi(std::io::stderr().is_terminal())
        // With a closed standard error, reporting write errors would panic.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    let lines = match args.log_format {
        LogFormat::Text => lines.with_target(false).with_filter(reloadable).boxed(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_filter(reloadable)
            .boxed(),
    };
    (lines, is_unreadable)
}

/// The filter of the log lines. Phases are for metrics and traces.
fn targets(level: Option<&LogLevel>, default: LevelFilter) -> Targets {
    let level = level
        .cloned()
        .unwrap_or_else(|| LogLevel::of_driver(default));
    let targets = level.targets().clone();
    targets.with_target(phase::TARGET, LevelFilter::OFF)
}

pub(super) fn warn_unreadable() {
    tracing::warn!(
        "RUST_LOG is invalid and ignored; {}",
        crate::cli::InvalidLogLevel
    );
}
