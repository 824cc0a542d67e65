//! `diskplugin doctor`: checks cloud and node, and reports what will not work, and why.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;

use super::kubeconfig;
use crate::base::error_chain;
use crate::cli::{self, OutputFormat, Scope};
use crate::ops::doctor::cluster;
use crate::ops::doctor::{Check, Report, json, table};

mod cloud;
mod node;
mod proxy;
mod versions;

/// Kubernetes sets it in pods.
const IN_POD: &str = "KUBERNETES_SERVICE_HOST";

const FAILED: u8 = 1;

pub(crate) async fn run(args: cli::Doctor) -> anyhow::Result<ExitCode> {
    let mut scopes = args.scope;
    if scopes.is_empty() {
        scopes.push(Scope::Cloud);
        if args.node.kubelet_dir.is_dir() {
            scopes.push(Scope::Node);
        }
        if kubeconfig::exists(&args.cluster) || std::env::var_os(IN_POD).is_some() {
            scopes.push(Scope::Cluster);
        }
    }
    let mut checks: Vec<Check> = Vec::new();
    if scopes.contains(&Scope::Cloud) {
        checks.extend(cloud::check(&args.location, args.cloud).await?);
    }
    if scopes.contains(&Scope::Node) {
        checks.extend(node::check(args.node).await);
    }
    if scopes.contains(&Scope::Cluster) {
        match kubeconfig::cluster(&args.cluster).await {
            Ok(cluster) => {
                let is_pod = !kubeconfig::exists(&args.cluster);
                checks.extend(cluster::check(&cluster, &args.driver.driver_name, is_pod).await);
            }
            Err(error) => checks.push(cluster::no_access(error_chain(&error))),
        }
    }
    print(&Report { checks }, args.output)
}

/// The checks of a node. `diskplugin-node` has no code of the cloud and of Kubernetes.
pub(crate) async fn run_on_node(args: cli::NodeDoctor) -> anyhow::Result<ExitCode> {
    let checks = node::check(args.node).await;
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
