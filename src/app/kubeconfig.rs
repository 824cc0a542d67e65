//! The kubeconfig files of an operator.

use std::path::{Path, PathBuf};

use crate::cli::KubeconfigArgs;
use crate::cluster::{Cluster, ConnectError};

/// The API server of the flags.
pub(crate) async fn cluster(args: &KubeconfigArgs) -> Result<Cluster, ConnectError> {
    Cluster::for_operator(args.kubeconfig.as_deref(), args.context.as_deref()).await
}

/// The files that are read: that of the flag, otherwise those that kubectl reads. They may not exist.
pub(crate) fn files(args: &KubeconfigArgs) -> Vec<PathBuf> {
    if let Some(file) = &args.kubeconfig {
        return vec![file.clone()];
    }
    if let Some(files) = std::env::var_os("KUBECONFIG") {
        return std::env::split_paths(&files).collect();
    }
    let home = std::env::var_os("HOME");
    let file = home.map(|home| Path::new(&home).join(".kube/config"));
    file.into_iter().collect()
}

/// Whether a kubeconfig is set or exists; otherwise only a pod reaches the API server.
pub(crate) fn exists(args: &KubeconfigArgs) -> bool {
    args.kubeconfig.is_some() || args.context.is_some() || files(args).iter().any(|file| file.exists())
}
