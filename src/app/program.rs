//! The three programs, their roles and their common flags.

use clap::{Parser, Subcommand};

use crate::cli::{AllInOne, Controller, LogArgs, Node, PreStopHook};
#[cfg(feature = "mock-cloud")]
use crate::cli::{Demo, MockCloud};
use crate::ops::{bundle, doctor, explain, import, orphans, timeline};

const PROGRAM: &str = "diskplugin";

/// CSI driver for Alibaba-style ECS cloud disks.
#[derive(Debug, Parser)]
#[command(name = PROGRAM, version, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub log: LogArgs,

    #[command(subcommand)]
    pub role: Role,

    /// The program in error messages.
    #[arg(skip = PROGRAM)]
    pub program: &'static str,
}

/// CSI driver for Alibaba-style ECS cloud disks: only the roles of a node, for less memory.
#[derive(Debug, Parser)]
#[command(name = "diskplugin-node", version, arg_required_else_help = true)]
pub struct NodeCli {
    #[command(flatten)]
    pub log: LogArgs,

    #[command(subcommand)]
    pub role: NodeProgramRole,
}

/// CSI driver for Alibaba-style ECS cloud disks: only the role of the controller, for less memory.
#[derive(Debug, Parser)]
#[command(name = "diskplugin-controller", version, arg_required_else_help = true)]
pub struct ControllerCli {
    #[command(flatten)]
    pub log: LogArgs,

    #[command(subcommand)]
    pub role: ControllerProgramRole,
}

#[derive(Debug, Subcommand)]
pub enum Role {
    /// Serve the Controller service (container of the Deployment).
    Controller(Box<Controller>),
    /// Serve the Node service (container of the DaemonSet).
    Node(Box<Node>),
    /// Serve Controller and Node on one socket.
    AllInOne(Box<AllInOne>),
    /// Explain what classes and claims in YAML files do with this driver.
    Explain(Box<explain::Flags>),
    /// Show what happened to a volume, how long it took, and what it waits for.
    Timeline(Box<timeline::Flags>),
    /// Write an archive for a bug report, without secrets.
    Bundle(Box<bundle::Flags>),
    /// Check cloud, node and cluster, and report what will not work, and why.
    Doctor(Box<doctor::Flags>),
    /// Report disks and snapshots that Kubernetes does not use, and delete named ones.
    Orphans(Box<orphans::Flags>),
    /// Print the PersistentVolume and the claim of a disk that exists.
    Import(Box<import::Flags>),
    /// Wait until a drained node has no attached volumes (preStop hook of the DaemonSet).
    PreStopHook(PreStopHook),
    /// Serve the fake ECS API over HTTP.
    #[cfg(feature = "mock-cloud")]
    MockCloud(Box<MockCloud>),
    /// Run a volume through its whole life cycle on an embedded fake cloud.
    #[cfg(feature = "mock-cloud")]
    Demo(Demo),
}

/// Roles of `diskplugin-controller`.
#[derive(Debug, Subcommand)]
pub enum ControllerProgramRole {
    /// Serve the Controller service (container of the Deployment).
    Controller(Box<Controller>),
}

/// Roles of `diskplugin-node`. They call neither the ECS API nor the API server.
#[derive(Debug, Subcommand)]
pub enum NodeProgramRole {
    /// Serve the Node service (container of the DaemonSet).
    Node(Box<Node>),
    /// Check this node, and report what will not work, and why.
    Doctor(doctor::NodeFlags),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_passes_claps_checks() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_of_a_role_has_an_environment_variable() {
        let command = Cli::command();
        for role in ["controller", "node"] {
            let role = command.find_subcommand(role).expect("the role exists");
            for arg in role.get_arguments().filter(|arg| arg.get_id() != "help") {
                let long = arg.get_long().expect("every flag has a long name");
                let wanted = match long {
                    // Set by the downward API, as for the sidecars.
                    "leader-election-identity" => "POD_NAME".to_owned(),
                    "leader-election-namespace" => "POD_NAMESPACE".to_owned(),
                    long => format!("DISKPLUGIN_{}", long.to_uppercase().replace('-', "_")),
                };
                assert_eq!(arg.get_env().and_then(|v| v.to_str()), Some(wanted.as_str()), "{long}");
            }
        }
    }
}
