//! Flags of `controller`.

use clap::Args;

use super::parse::{Interval, interval};
use super::{CloudArgs, KubernetesArgs, LocationArgs, OwnerArgs, PageArgs, ServerArgs};

#[derive(Debug, Args)]
pub struct Controller {
    #[command(flatten)]
    pub common: ControllerRoleArgs,
    #[command(flatten, next_help_heading = "Options for the Kubernetes API server")]
    pub kubernetes: KubernetesArgs,
}

/// Flags of every role that serves the Controller service.
#[derive(Debug, Args)]
pub struct ControllerRoleArgs {
    #[command(flatten)]
    pub server: ServerArgs,
    #[command(flatten)]
    pub location: LocationArgs,
    #[command(flatten)]
    pub cloud: CloudArgs,
    #[command(flatten)]
    pub owner: OwnerArgs,
    #[command(flatten)]
    pub controller: ControllerArgs,
    #[command(flatten, next_help_heading = "Options for the HTTP port")]
    pub pages: PageArgs,
}

/// Flags of the Controller service itself.
#[derive(Debug, Args)]
pub struct ControllerArgs {
    /// How often the disks of the cluster are listed to count them by state and category in /metrics: one call per 100
    /// disks; 0s means never. Only with --http-address.
    #[arg(long, env = "DISKPLUGIN_METRICS_INVENTORY_INTERVAL", default_value = "5m", value_parser = interval)]
    pub metrics_inventory_interval: Interval,
    /// Advertise LIST_VOLUMES_PUBLISHED_NODES: csi-attacher then lists the volumes every minute and publishes each one
    /// again whose attachment the list lacks. Each list reads all disks of the account in the region, 500 per call.
    #[arg(long, env = "DISKPLUGIN_LIST_VOLUMES_PUBLISHED_NODES")]
    pub list_volumes_published_nodes: bool,
}
