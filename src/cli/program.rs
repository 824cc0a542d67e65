//! The two programs, their roles and their common flags.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

use super::{AllInOne, Controller, MapDevice, Node};
#[cfg(feature = "mock-cloud")]
use super::{Demo, MockCloud};

/// Environment variable of `--log-format`.
const LOG_FORMAT: &str = "DISKPLUGIN_LOG_FORMAT";

/// Exit code of an invalid command line (`EX_USAGE` of sysexits.h).
const USAGE: u8 = 64;

/// CSI driver for Alibaba-style ECS cloud disks.
#[derive(Debug, Parser)]
#[command(name = "diskplugin", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub log: LogArgs,

    #[command(subcommand)]
    pub role: Role,
}

/// CSI driver for Alibaba-style ECS cloud disks: only the roles of a node, for less memory.
#[derive(Debug, Parser)]
#[command(name = "diskplugin-node", version, arg_required_else_help = true)]
pub struct NodeCli {
    #[command(flatten)]
    pub log: LogArgs,

    #[command(subcommand)]
    pub role: NodeRole,
}

#[derive(Debug, Args)]
pub struct LogArgs {
    /// Format of log lines. RUST_LOG sets the log level, such as debug.
    #[arg(
        long,
        global = true,
        env = LOG_FORMAT,
        value_enum,
        default_value_t
    )]
    pub log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// Human-readable lines.
    #[default]
    Text,
    /// One JSON object per line, for log collectors.
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Role {
    /// Serve the Controller service (container of the Deployment).
    Controller(Box<Controller>),
    /// The roles of a node.
    #[command(flatten)]
    Node(NodeRole),
    /// Serve Controller and Node on one socket.
    AllInOne(Box<AllInOne>),
    /// Serve the fake ECS API over HTTP.
    #[cfg(feature = "mock-cloud")]
    MockCloud(Box<MockCloud>),
    /// Run a volume through its whole life cycle on an embedded fake cloud.
    #[cfg(feature = "mock-cloud")]
    Demo(Demo),
}

/// Roles of a node. They call neither the ECS API nor the API server.
#[derive(Debug, Subcommand)]
pub enum NodeRole {
    /// Serve the Node service (container of the DaemonSet).
    Node(Box<Node>),
    /// Map a device that has no serial to a disk.
    Map(MapDevice),
}

/// The command line of this process.
///
/// # Errors
///
/// The exit code of a process that has no role to run: help was requested, or a flag is invalid. The message has been printed.
pub fn parse<P: Parser>() -> Result<P, ExitCode> {
    P::try_parse().map_err(|error| {
        let (is_asked, is_help) = match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => (true, true),
            // The complete help text, which has no reason in it.
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => (false, true),
            _ => (false, false),
        };
        // A closed terminal cannot be handled.
        let _ = match is_help {
            true => error.print(),
            false => print_error(&error),
        };
        match is_asked {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(USAGE),
        }
    })
}

/// Prints the usage hints and then the reason: Kubernetes shows the last line of a container that does not start.
fn print_error(error: &clap::Error) -> std::io::Result<()> {
    let text = error.render().to_string();
    let (reason, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let reason: Vec<&str> = reason.lines().map(str::trim).collect();
    let reason = reason.join(" ");
    if wants_json(std::env::args_os(), std::env::var_os(LOG_FORMAT)) {
        let line = serde_json::json!({"level": "ERROR", "message": reason});
        return writeln!(std::io::stderr(), "{line}");
    }
    let lines = [rest.trim_end(), "", &reason].join("\n");
    writeln!(std::io::stderr(), "{}", lines.trim_start())
}

/// Whether JSON lines are wanted. The command line is invalid, so the flag is searched in the raw arguments.
fn wants_json(args: impl IntoIterator<Item = OsString>, variable: Option<OsString>) -> bool {
    let args: Vec<_> = args.into_iter().collect();
    let given = args.iter().enumerate().find_map(|(at, arg)| {
        let arg = arg.to_str()?;
        match arg.strip_prefix("--log-format")? {
            "" => args.get(at + 1)?.to_str(),
            value => value.strip_prefix('='),
        }
    });
    match given {
        Some(given) => given == "json",
        None => variable.is_some_and(|value| value == "json"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_takes_precedence_over_the_variable() {
        let wants = |line: &str, variable: Option<&str>| {
            let args = line.split(' ').map(OsString::from);
            wants_json(args, variable.map(OsString::from))
        };
        assert!(wants("diskplugin node --log-format=json", None));
        assert!(wants("diskplugin node --log-format json --nope", None));
        assert!(wants("diskplugin --nope", Some("json")));
        assert!(!wants("diskplugin --log-format text", Some("json")));
        assert!(!wants("diskplugin --log-formats=json", None));
    }
}
