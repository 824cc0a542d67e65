//! The processes of the driver, and the pages of their HTTP port that commands read.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::kubeconfig::KubeconfigArgs;
use crate::cli::DriverArgs;
use crate::cluster::segment;

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

impl ProcessArgs {
    /// The token of `--token-file`.
    pub fn token(&self) -> anyhow::Result<Option<String>> {
        let Some(file) = &self.token_file else {
            return Ok(None);
        };
        let token = std::fs::read_to_string(file);
        let token = token.with_context(|| format!("cannot read --token-file {}", file.display()))?;
        Ok(Some(token.trim().to_owned()))
    }
}

/// The path of the history of a volume.
pub(super) fn history(volume: &str) -> String {
    format!("/debug/volumes/{}", segment(volume))
}
