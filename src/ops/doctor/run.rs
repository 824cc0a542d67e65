//! `diskplugin doctor`: checks cloud and node, and reports what will not work, and why.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;

use super::check::{Check, Report};
use super::flags::{Flags, NodeFlags, Scope};
use super::render::{json, table};
use super::{access, cluster};
use crate::base::error_chain;
use crate::cli::{NodeDirectoryArgs, OutputFormat};
use crate::ops::Connect;

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
    print(&Report { checks }, args.output)
}

/// The checks of a node only. `diskplugin-node` has no code of the cloud and of Kubernetes.
///
/// # Errors
/// The report cannot be printed.
pub async fn run_on_node(
    args: NodeFlags,
    node: impl AsyncFnOnce(NodeDirectoryArgs) -> Vec<Check>,
) -> anyhow::Result<ExitCode> {
    let checks = node(args.node).await;
    print(&Report { checks }, args.output)
}

fn print(report: &Report, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let text = match format {
        OutputFormat::Table => table(report),
        OutputFormat::Json => json(report).to_string(),
    };
    writeln!(std::io::stdout(), "{text}").context("cannot print")?;
    Ok(match report.has_failed() {
        true => ExitCode::from(FAILED),
        false => ExitCode::SUCCESS,
    })
}
