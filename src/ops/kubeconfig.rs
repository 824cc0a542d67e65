//! How a command reaches Kubernetes, and the cloud of its volumes.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::base::error_chain;
use crate::cli::{CloudArgs, DriverArgs, InvalidSettings, LocationArgs, OwnerArgs};
use crate::cluster::{Cluster, ConnectError};

#[derive(Debug, Args)]
pub struct KubeconfigArgs {
    /// kubeconfig. Default: KUBECONFIG, then the file of kubectl, then the ServiceAccount token of the pod.
    #[arg(long, env = "DISKPLUGIN_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig. Default: its current context.
    #[arg(long)]
    pub context: Option<String>,
}

/// Flags of commands that compare the cloud with Kubernetes.
#[derive(Debug, Args)]
pub struct OperatorArgs {
    #[command(flatten)]
    pub driver: DriverArgs,
    #[command(flatten)]
    pub location: LocationArgs,
    #[command(flatten)]
    pub cloud: CloudArgs,
    #[command(flatten)]
    pub owner: OwnerArgs,
    #[command(flatten)]
    pub kubernetes: KubeconfigArgs,
}

impl KubeconfigArgs {
    /// The API server. Nothing is sent yet.
    pub async fn connect(&self) -> Result<Cluster, ConnectError> {
        Cluster::for_operator(self.kubeconfig.as_deref(), self.context.as_deref()).await
    }

    /// As [`Self::connect`], for commands that cannot do without.
    pub async fn require(&self) -> Result<Cluster, InvalidSettings> {
        let cluster = self.connect().await;
        cluster.map_err(|error| InvalidSettings::one(error_chain(&error)))
    }

    /// Whether a kubeconfig is set or exists; otherwise only a pod reaches the API server.
    pub fn exists(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some() || default_files().iter().any(|file| file.exists())
    }
}

/// The files that kubectl reads. They may not exist.
fn default_files() -> Vec<PathBuf> {
    if let Some(files) = std::env::var_os("KUBECONFIG") {
        return std::env::split_paths(&files).collect();
    }
    let home = std::env::var_os("HOME");
    let file = home.map(|home| Path::new(&home).join(".kube/config"));
    file.into_iter().collect()
}
