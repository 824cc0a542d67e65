//! The configuration file of a role: its flags as YAML, with the names of the flags in camel case. A flag and its
//! environment variable take precedence over the file.

use std::path::PathBuf;

use clap::{Args, Subcommand};

mod document;
mod file;
mod flags;
mod load;

#[cfg(test)]
mod tests;

pub use file::{ConfigFile, Reloaded};
pub(super) use load::{Failed, load};

/// Environment variable of `--config-file`.
const VARIABLE: &str = "DISKPLUGIN_CONFIG_FILE";

/// `apiVersion` of the file.
pub const API_VERSION: &str = "config.diskplugin.csi.example/v1";

/// Each `kind` of a file, with the role that reads it.
pub const KINDS: [(&str, &str); 3] = [
    ("ControllerConfiguration", "controller"),
    ("NodeConfiguration", "node"),
    ("AllInOneConfiguration", "all-in-one"),
];

/// The settings that a running process adopts when the file changes. All others need a restart.
pub const RELOADED: [&str; 2] = ["logLevel", "rateLimits"];

/// What is wrong with a configuration file: one line for each problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the configuration file {} is invalid:\n  {}", .path.display(), .problems.join("\n  "))]
pub struct InvalidConfig {
    pub path: PathBuf,
    pub problems: Vec<String>,
}

/// The flag that names the file.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Configuration file (YAML) with settings that are neither on the command line nor in the environment. Changes of
    /// logLevel and rateLimits are adopted while the process runs.
    #[arg(long, env = VARIABLE, value_name = "FILE")]
    pub config_file: Option<PathBuf>,
}

/// Commands for configuration files.
#[derive(Debug, Args)]
pub struct ConfigCommand {
    #[command(subcommand)]
    pub command: ConfigSubcommand,
}

#[derive(Debug, Subcommand)]
pub enum ConfigSubcommand {
    /// Check a configuration file, and show its settings.
    Check(CheckConfig),
}

#[derive(Debug, Args)]
pub struct CheckConfig {
    /// The configuration file.
    pub file: PathBuf,
}
