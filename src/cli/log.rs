//! Flags of the log.

use clap::Args;

use crate::telemetry::{LogFormat, LogLevel};

/// Environment variable of `--log-format`.
pub const LOG_FORMAT: &str = "DISKPLUGIN_LOG_FORMAT";

#[derive(Debug, Args)]
pub struct LogArgs {
    /// Format of log lines.
    #[arg(
        long,
        global = true,
        env = LOG_FORMAT,
        value_enum,
        default_value_t
    )]
    pub log_format: LogFormat,

    /// Log level, such as debug, or log levels by target, such as info,ecs=debug. RUST_LOG takes
    /// precedence. Default: info; error for commands that print a result.
    #[arg(long, global = true, env = "DISKPLUGIN_LOG_LEVEL", value_name = "LEVEL")]
    pub log_level: Option<LogLevel>,
}
