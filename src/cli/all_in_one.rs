//! Flags of `all-in-one`.

use clap::{Args, ValueEnum};

use super::parse::{Interval, interval};
use super::{CloudArgs, LocationArgs, NodeArgs, OwnerArgs, PageArgs, ServerArgs};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum CloudKind {
    /// The cloud of the region, or of `--ecs-endpoint`.
    #[default]
    Real,
    /// An embedded fake cloud.
    #[cfg(feature = "mock-cloud")]
    Mock,
}

#[derive(Debug, Args)]
pub struct AllInOne {
    #[command(flatten)]
    pub server: ServerArgs,
    #[command(flatten)]
    pub location: LocationArgs,
    #[command(flatten)]
    pub cloud: CloudArgs,
    #[command(flatten)]
    pub owner: OwnerArgs,
    /// How often the disks of the cluster are listed to count them by state and category in /metrics: one call per 100
    /// disks; 0s means never. Only with --http-address.
    #[arg(long, env = "DISKPLUGIN_METRICS_INVENTORY_INTERVAL", default_value = "5m", value_parser = interval)]
    pub metrics_inventory_interval: Interval,
    /// Advertise LIST_VOLUMES_PUBLISHED_NODES: csi-attacher then lists the volumes every minute and publishes each one
    /// again whose attachment the list lacks. Each list reads all disks of the account in the region, 500 per call.
    #[arg(long, env = "DISKPLUGIN_LIST_VOLUMES_PUBLISHED_NODES")]
    pub list_volumes_published_nodes: bool,
    #[command(flatten, next_help_heading = "Options for the HTTP port")]
    pub pages: PageArgs,
    #[command(flatten)]
    pub node: NodeArgs,
    /// Cloud to use.
    #[arg(long = "cloud", env = "DISKPLUGIN_CLOUD", value_enum, default_value_t)]
    pub cloud_kind: CloudKind,
    #[cfg(feature = "mock-cloud")]
    #[command(flatten, next_help_heading = "With --cloud mock")]
    pub mock: fake_ecs::Options,
}
