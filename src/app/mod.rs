//! The composition roots: each role creates its parts and passes them as arguments.

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
mod health;
mod health_check;
mod http;
mod instance_types_config_map;
mod location;
mod map;
#[cfg(feature = "mock-cloud")]
mod mock_cloud;
mod node;
mod node_checks;
mod process;
mod reregistration;
mod signal;
mod telemetry;
mod tools;

/// All missing and invalid settings.
#[derive(Debug, thiserror::Error)]
#[error("missing or invalid settings:\n  {}", .0.join("\n  "))]
pub(crate) struct InvalidSettings(pub(crate) Vec<String>);

#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let process = Process::new(cli.log.log_format);
    match cli.role {
        Role::Node(role) => run_node_role(role, process),
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

/// Runs a role of a node. No other role is reachable from here, so that the linker leaves them out of `diskplugin-node`.
#[must_use]
pub fn run_node(cli: NodeCli) -> ExitCode {
    let process = Process {
        program: "diskplugin-node",
        ..Process::new(cli.log.log_format)
    };
    run_node_role(cli.role, process)
}

fn run_node_role(role: NodeRole, process: Process) -> ExitCode {
    match role {
        NodeRole::Node(args) => process.run(node::run(*args)),
        // It prints its own results.
        NodeRole::Map(args) => Process {
            quiet: true,
            ..process
        }
        .run(map::run(args)),
    }
}

/// Whether this process may attach loop devices and mount. `/proc/self` belongs to the effective user.
#[cfg(feature = "mock-cloud")]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
