//! Flags of `diskplugin doctor`.

use clap::{Args, ValueEnum};

use crate::cli::{CloudArgs, DriverArgs, LocationArgs, NodeDirectoryArgs, OutputFormat};
use crate::ops::kubeconfig::KubeconfigArgs;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// Credentials, permissions, clock, zones and stock.
    Cloud,
    /// Objects of the installation in Kubernetes, nodes and rights.
    Cluster,
    /// Kernel, capabilities, devices, mounts and tools of this machine.
    Node,
}

#[derive(Debug, Args)]
pub struct Flags {
    /// What to check, separated by commas. Default: cloud; node if --kubelet-dir exists; cluster if a kubeconfig exists
    /// or this is a pod.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub scope: Vec<Scope>,

    /// Format of the report.
    #[arg(long, value_enum, default_value_t)]
    pub output: OutputFormat,

    #[command(flatten)]
    pub driver: DriverArgs,
    #[command(flatten)]
    pub cluster: KubeconfigArgs,
    #[command(flatten)]
    pub location: LocationArgs,
    #[command(flatten)]
    pub cloud: CloudArgs,
    #[command(flatten)]
    pub node: NodeDirectoryArgs,
}

/// The checks of a node only.
#[derive(Debug, Args)]
pub struct NodeFlags {
    /// Format of the report.
    #[arg(long, value_enum, default_value_t)]
    pub output: OutputFormat,

    #[command(flatten)]
    pub node: NodeDirectoryArgs,
}
