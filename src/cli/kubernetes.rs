//! Flags of the controller features that use the API server of the cluster. All are off by default.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use super::LeaderElectionArgs;
use super::parse::{Interval, duration, interval, object_name, taint_key};

#[derive(Debug, Args)]
pub struct KubernetesArgs {
    #[command(flatten)]
    pub leader_election: LeaderElectionArgs,

    /// ConfigMap for the attachment limits of the instance types of the cluster's nodes, mounted on nodes for
    /// --instance-types-file. It must exist in the namespace of the controller's ServiceAccount or
    /// of the kubeconfig's context.
    #[arg(long, env = "DISKPLUGIN_INSTANCE_TYPES_CONFIG_MAP", value_parser = object_name)]
    pub instance_types_config_map: Option<String>,

    /// Write events: on a PersistentVolumeClaim if disks are out of stock or its disk is in use elsewhere, on a Node if
    /// its attachment limit is reached.
    #[arg(long, env = "DISKPLUGIN_EVENTS")]
    pub events: bool,

    /// Key of the startup taint of nodes, such as diskplugin.csi.example/agent-not-ready. The controller removes the
    /// taint, whatever its effect, once the driver is registered on the node.
    #[arg(long, env = "DISKPLUGIN_STARTUP_TAINT", value_parser = taint_key)]
    pub startup_taint: Option<String>,

    /// How often disks and snapshots that Kubernetes does not use are counted for /metrics, as by diskplugin orphans
    /// with --min-age 1h: lists all disks, snapshots and volumes. 0s means never.
    #[arg(long, env = "DISKPLUGIN_METRICS_ORPHANS_INTERVAL", default_value = "0s", value_parser = interval)]
    pub metrics_orphans_interval: Interval,

    #[command(flatten)]
    pub fencing: FencingArgs,

    /// kubeconfig for a controller that does not run in a pod. Default: the ServiceAccount token of the pod. The API
    /// server is called only if one of the flags above is set.
    #[arg(long, env = "DISKPLUGIN_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct FencingArgs {
    /// Set the taint node.kubernetes.io/out-of-service on nodes that are not ready and whose instance the cloud reports
    /// as stopped or released, so that Kubernetes moves their pods and volumes immediately; remove it when the
    /// instance runs again.
    #[arg(long, env = "DISKPLUGIN_FENCING", requires = "events")]
    pub fencing: bool,

    /// How long the cloud must report the instance as stopped while the node is not ready, at least 5s. At least a
    /// minute for a released instance.
    #[arg(long, env = "DISKPLUGIN_FENCING_GRACE_PERIOD", default_value = "5s", value_parser = grace_period)]
    pub fencing_grace_period: Duration,

    /// The largest share of the nodes, in percent, that may have the taint at once; at least one node.
    #[arg(long, env = "DISKPLUGIN_FENCING_MAX_NODES_PERCENT", default_value = "20",
        value_parser = RangedU64ValueParser::<u8>::new().range(1..=100))]
    pub fencing_max_nodes_percent: u8,
}

fn grace_period(text: &str) -> Result<Duration, String> {
    let parsed = duration(text)?;
    let is_long_enough = parsed >= Duration::from_secs(5);
    is_long_enough
        .then_some(parsed)
        .ok_or_else(|| "allowed: a duration of at least 5s".to_owned())
}

impl KubernetesArgs {
    /// The flags of features of the leader that are set and need the API server.
    pub fn enabled(&self) -> Vec<&'static str> {
        let flags = [
            (self.instance_types_config_map.is_some(), "--instance-types-config-map"),
            (self.events, "--events"),
            (self.startup_taint.is_some(), "--startup-taint"),
            (self.fencing.fencing, "--fencing"),
            (self.metrics_orphans_interval.0.is_some(), "--metrics-orphans-interval"),
        ];
        let set = flags.into_iter().filter(|(set, _)| *set);
        set.map(|(_, flag)| flag).collect()
    }
}
