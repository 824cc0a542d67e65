//! `diskplugin doctor`: checks cloud and node, and reports what will not work, and why.

use std::process::ExitCode;

use super::check::{Check, Status};
use super::flags::{Flags, NodeFlags, Scope};
use super::render::{count, json, table};
use super::{access, cluster};
use crate::base::error_chain;
use crate::cli::{NodeDirectoryArgs, OutputFormat};
use crate::ops::{self, Connect};

/// Kubernetes sets it in pods.
const IN_POD: &str = "KUBERNETES_SERVICE_HOST";

const FAILED: u8 = 1;

/// Runs the checks of all scopes. `node` runs those of this machine.
///
/// # Errors
/// The settings are invalid.
pub async fn run(
    args: Flags,
    connect: Connect,
    node: impl AsyncFnOnce(NodeDirectoryArgs) -> Vec<Check>,
) -> anyhow::Result<ExitCode> {
    let mut scopes = args.scope;
    if scopes.is_empty() {
        scopes.push(Scope::Cloud);
        if args.node.kubelet_dir.is_dir() {
            scopes.push(Scope::Node);
        }
        if args.cluster.exists() || std::env::var_os(IN_POD).is_some() {
            scopes.push(Scope::Cluster);
        }
    }
    let mut checks: Vec<Check> = Vec::new();
    if scopes.contains(&Scope::Cloud) {
        checks.extend(access::check(&args.location, args.cloud, connect).await?);
    }
    if scopes.contains(&Scope::Node) {
        checks.extend(node(args.node).await);
    }
    if scopes.contains(&Scope::Cluster) {
        match args.cluster.connect().await {
            Ok(cluster) => {
                let is_pod = !args.cluster.exists();
                checks.extend(cluster::check(&cluster, &args.driver.driver_name, is_pod).await);
            }
            Err(error) => checks.push(cluster::no_access(error_chain(&error))),
        }
    }
    print(&checks, args.output)
}

/// The checks of a node only. `diskplugin-node` has no code of the cloud and of Kubernetes.
///
/// # Errors
/// The report cannot be printed.
pub async fn run_on_node(
    args: NodeFlags,
    node: impl AsyncFnOnce(NodeDirectoryArgs) -> Vec<Check>,
) -> anyhow::Result<ExitCode> {
    print(&node(args.node).await, args.output)
}

fn print(checks: &[Check], format: OutputFormat) -> anyhow::Result<ExitCode> {
    let text = match format {
        OutputFormat::Table => table(checks),
        OutputFormat::Json => json(checks).to_string(),
    };
    ops::print(text)?;
    Ok(match count(checks, Status::Failed) {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(FAILED),
    })
}
