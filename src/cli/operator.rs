//! Flags that the commands of operators share.

use std::path::PathBuf;

use clap::Args;

use super::DriverArgs;

/// How a command reaches Kubernetes.
#[derive(Debug, Args)]
pub struct KubeconfigArgs {
    /// kubeconfig. Default: KUBECONFIG, then the file of kubectl, then the ServiceAccount token of the pod.
    #[arg(long, env = "DISKPLUGIN_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig. Default: its current context.
    #[arg(long)]
    pub context: Option<String>,
}

/// The processes of the driver whose HTTP port a command reads.
#[derive(Debug, Args)]
pub struct ProcessArgs {
    /// URL of the HTTP port of a driver process, such as http://127.0.0.1:9808, repeatable: reads only this, and not
    /// Kubernetes. Default: the pods of the driver, through the API server.
    #[arg(long, value_name = "URL", value_parser = url)]
    pub url: Vec<String>,

    /// File with the bearer token for --url, if the port requires authorization.
    #[arg(long, requires = "url")]
    pub token_file: Option<PathBuf>,

    /// Namespace of the driver. Default: all.
    #[arg(long)]
    pub namespace: Option<String>,

    #[command(flatten)]
    pub cluster: KubeconfigArgs,

    #[command(flatten)]
    pub driver: DriverArgs,
}

fn url(text: &str) -> Result<String, String> {
    let allowed = "allowed: http://HOST:PORT";
    let authority = text.trim_end_matches('/').strip_prefix("http://");
    let is_authority = |authority: &str| authority.parse::<http::uri::Authority>().is_ok();
    let authority = authority.filter(|authority| is_authority(authority));
    authority.map(str::to_owned).ok_or_else(|| allowed.to_owned())
}
