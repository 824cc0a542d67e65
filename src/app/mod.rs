//! The composition roots: each role creates its parts and passes them as arguments.

use std::process::ExitCode;

use clap::CommandFactory;

use self::process::Process;
use crate::cli;
use crate::ops::{bundle, doctor, explain, import, orphans, timeline};
use crate::telemetry::Telemetry;

mod all_in_one;
mod cloud;
mod cluster;
mod controller;
mod credential;
#[cfg(feature = "mock-cloud")]
mod demo;
mod http;
mod instance_types_config_map;
mod kubectl;
#[cfg(feature = "mock-cloud")]
mod mock_cloud;
mod node;
mod node_doctor;
mod parse;
mod pre_stop_hook;
mod process;
mod program;
mod reregistration;
mod signal;
#[cfg(feature = "mock-cloud")]
mod user;

pub use kubectl::{OPERATOR_COMMANDS, PLUGIN};
pub use parse::{parse, parse_program};
pub use program::{Cli, ControllerCli, ControllerProgramRole, NodeCli, NodeProgramRole, Role};

/// The programs' memory allocator: one heap for all threads. glibc keeps a heap for each thread that runs at the same
/// time as others, which is 5 MiB more after a hundred parallel stages, and grows with the number of processors.
pub use dlmalloc::GlobalDlmalloc as Allocator;

#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let process = Process::new(cli.program, cli.log);
    let telemetry = Telemetry::default();
    match cli.role {
        Role::Node(args) => run_node_role(*args, process),
        Role::Controller(args) => run_controller_role(*args, process),
        Role::AllInOne(args) => process.serve(&telemetry, Box::pin(all_in_one::run(*args, telemetry.clone()))),
        Role::Explain(args) => process.quiet().run(Box::pin(explain::run(*args, cloud::client))),
        Role::Timeline(args) => process.quiet().run(Box::pin(timeline::run(*args))),
        Role::Bundle(args) => process.quiet().run(Box::pin(run_bundle(*args))),
        Role::Doctor(args) => process
            .quiet()
            .report(doctor::run(*args, cloud::client, node_doctor::check)),
        Role::Orphans(args) => process.quiet().report(orphans::run(*args, cloud::client)),
        Role::Import(args) => process.quiet().run(Box::pin(import::run(*args, cloud::client))),
        Role::PreStopHook(args) => process.run(pre_stop_hook::run(args)),
        #[cfg(feature = "mock-cloud")]
        Role::MockCloud(args) => process.run(mock_cloud::run(*args)),
        #[cfg(feature = "mock-cloud")]
        Role::Demo(args) => process.quiet().run(demo::run(args)),
    }
}

/// Runs the controller. No other role is reachable from here, so that the linker leaves them out of
/// `diskplugin-controller`.
#[must_use]
pub fn run_controller(cli: ControllerCli) -> ExitCode {
    let process = Process::new("diskplugin-controller", cli.log);
    match cli.role {
        ControllerProgramRole::Controller(args) => run_controller_role(*args, process),
    }
}

fn run_controller_role(args: cli::Controller, process: Process) -> ExitCode {
    let telemetry = Telemetry::default();
    process.serve(&telemetry, controller::run(args, telemetry.clone()))
}

/// Runs a role of a node. No other role is reachable from here, so that the linker leaves them out of
/// `diskplugin-node`.
#[must_use]
pub fn run_node(cli: NodeCli) -> ExitCode {
    let process = Process::new("diskplugin-node", cli.log);
    match cli.role {
        NodeProgramRole::Node(args) => run_node_role(*args, process),
        NodeProgramRole::Doctor(args) => process.quiet().report(doctor::run_on_node(args, node_doctor::check)),
    }
}

fn run_node_role(args: cli::Node, process: Process) -> ExitCode {
    let telemetry = Telemetry::default();
    process.serve(&telemetry, node::run(args, telemetry.clone()))
}

async fn run_bundle(args: bundle::Flags) -> anyhow::Result<()> {
    bundle::run(args, Cli::command(), signal::stop()?).await
}
