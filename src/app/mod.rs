//! The composition roots: each role builds its parts and passes them by argument.

use std::os::unix::fs::MetadataExt;
use std::process::ExitCode;

use self::process::Process;
use crate::cli::{Cli, NodeCli, NodeRole, Role};

mod all_in_one;
mod cloud;
mod cluster;
mod controller;
mod credential;
#[cfg(feature = "mock-cloud")]
mod demo;
mod facts;
mod health;
mod http;
mod mark;
#[cfg(feature = "mock-cloud")]
mod mock_cloud;
mod node;
mod place;
mod process;
mod renewal;
mod signal;
mod telemetry;
mod tools;
mod types;

/// Settings that cannot work, all of them at once.
#[derive(Debug, thiserror::Error)]
#[error("the settings do not suffice:\n  {}", .0.join("\n  "))]
pub(crate) struct WrongSettings(pub(crate) Vec<String>);

/// Runs the role to its end.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let process = Process::new(cli.log.log_format);
    match cli.role {
        Role::Node(role) => of_node(role, process),
        Role::Controller(args) => process.run(controller::run(*args)),
        Role::AllInOne(args) => process.run(Box::pin(all_in_one::run(*args))),
        #[cfg(feature = "mock-cloud")]
        Role::MockCloud(args) => process.run(mock_cloud::run(*args)),
        #[cfg(feature = "mock-cloud")]
        Role::Demo(args) => Process {
            quiet: true,
            ..process
        }
        .run(demo::run(args)),
    }
}

/// Runs the role of a node to its end. No other role is reached from here, so that a program which runs only this has
/// nothing of them in it.
#[must_use]
pub fn run_node(cli: NodeCli) -> ExitCode {
    let process = Process {
        program: "diskplugin-node",
        ..Process::new(cli.log.log_format)
    };
    of_node(cli.role, process)
}

fn of_node(role: NodeRole, process: Process) -> ExitCode {
    match role {
        NodeRole::Node(args) => process.run(node::run(*args)),
        // It says itself what it has done.
        NodeRole::Mark(args) => Process {
            quiet: true,
            ..process
        }
        .run(mark::run(args)),
    }
}

/// Whether this process may attach loop devices and mount: the owner of `/proc/self` is the
/// effective user.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
