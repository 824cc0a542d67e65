//! Flags of `pre-stop-hook`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::DriverArgs;
use super::parse::duration;

#[derive(Debug, Args)]
pub struct PreStopHook {
    /// Name of the Node, from spec.nodeName of the pod.
    #[arg(long, env = "DISKPLUGIN_NODE_NAME")]
    pub node_name: String,

    /// How long to wait at most: shorter than terminationGracePeriodSeconds less --drain-timeout of the node plugin.
    #[arg(long, default_value = "2m", value_parser = duration)]
    pub timeout: Duration,

    /// File to which log lines are appended instead of standard error, which kubelet discards. /proc/1/fd/2 is the log
    /// of the container.
    #[arg(long)]
    pub log_file: Option<PathBuf>,

    /// kubeconfig. Default: the ServiceAccount token of the pod.
    #[arg(long, env = "DISKPLUGIN_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,

    #[command(flatten)]
    pub driver: DriverArgs,
}
