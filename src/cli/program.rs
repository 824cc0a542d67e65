//! The programs: which roles each has, and what all of them take.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

use super::{AllInOne, Controller, Mark, Node};
#[cfg(feature = "mock-cloud")]
use super::{Demo, MockCloud};

/// The variable of `--log-format`.
const LOG_FORMAT: &str = "DISKPLUGIN_LOG_FORMAT";

/// A wrong command line (`EX_USAGE` of sysexits.h).
const USAGE: u8 = 64;

/// CSI driver for Alibaba-style ECS cloud disks.
#[derive(Debug, Parser)]
#[command(name = "diskplugin", version, arg_required_else_help = true)]
pub struct Cli {
    /// How it logs.
    #[command(flatten)]
    pub log: Log,

    /// The role.
    #[command(subcommand)]
    pub role: Role,
}

/// CSI driver for Alibaba-style ECS cloud disks: only what runs on each node, and takes the memory of that alone.
#[derive(Debug, Parser)]
#[command(name = "diskplugin-node", version, arg_required_else_help = true)]
pub struct NodeCli {
    /// How it logs.
    #[command(flatten)]
    pub log: Log,

    /// The role.
    #[command(subcommand)]
    pub role: NodeRole,
}

/// How a program logs.
#[derive(Debug, Args)]
pub struct Log {
    /// How log lines look. How much is logged is said by RUST_LOG, such as debug.
    #[arg(
        long,
        global = true,
        env = LOG_FORMAT,
        value_enum,
        default_value_t
    )]
    pub log_format: LogFormat,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For log collectors: one object a line.
    Json,
}

/// All roles.
#[derive(Debug, Subcommand)]
pub enum Role {
    /// Serve the Controller service: the Deployment's container.
    Controller(Box<Controller>),
    /// The roles of a node.
    #[command(flatten)]
    Node(NodeRole),
    /// Serve Controller and Node on one socket.
    AllInOne(Box<AllInOne>),
    /// Serve the fake ECS API over HTTP.
    #[cfg(feature = "mock-cloud")]
    MockCloud(Box<MockCloud>),
    /// Show a volume's whole life against the embedded fake cloud.
    #[cfg(feature = "mock-cloud")]
    Demo(Demo),
}

/// What is done on a node. It calls neither the cloud's API nor the API server.
#[derive(Debug, Subcommand)]
pub enum NodeRole {
    /// Serve the Node service: the DaemonSet's container.
    Node(Box<Node>),
    /// Say which disk a device without a serial is.
    Mark(Mark),
}

/// The command line of this process.
///
/// # Errors
///
/// With what the process ends where nothing is to be run: the help was asked for, or a flag is wrong. What is to be said of it
/// has been printed.
pub fn parse<P: Parser>() -> Result<P, ExitCode> {
    P::try_parse().map_err(|error| {
        let (is_asked, is_help) = match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => (true, true),
            // All of the help, which has no reason in it.
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => (false, true),
            _ => (false, false),
        };
        // Nothing can be done about a closed terminal.
        let _ = match is_help {
            true => error.print(),
            false => complain(&error),
        };
        match is_asked {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(USAGE),
        }
    })
}

/// Says what is wrong with the command line, after what else there is to say: of a container that does not start, the last
/// line is what people see.
fn complain(error: &clap::Error) -> std::io::Result<()> {
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

/// Whether the last words go to a collector, which takes one object a line. The command line could not be read, so that this is
/// looked for in it.
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
    fn the_flag_goes_before_the_variable() {
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
