//! Flags of `diskplugin orphans`.

use std::time::Duration;

use clap::Args;

use super::finding::{Class, ResourceId};
use crate::cli::OutputFormat;
use crate::cli::parse::duration;
use crate::ops::kubeconfig::OperatorArgs;

#[derive(Debug, Args)]
pub struct Flags {
    #[command(flatten)]
    pub common: OperatorArgs,

    /// Age from which a resource without an object in Kubernetes is reported; younger ones are counted.
    #[arg(long, default_value = "1h", value_parser = duration)]
    pub min_age: Duration,

    /// Classes to report, separated by commas. Default: all.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub class: Vec<Class>,

    /// Format of the report.
    #[arg(long, value_enum, default_value_t)]
    pub output: OutputFormat,

    /// Report also if no object in Kubernetes refers to any resource of the cluster ID. By default that is an error,
    /// because the kubeconfig may be of another cluster.
    #[arg(long, conflicts_with = "delete")]
    pub allow_unreferenced: bool,

    /// IDs of leaked disks and snapshots to delete, with their data. Requires --older-than.
    #[arg(long, num_args = 1.., value_delimiter = ',', requires = "older_than", value_parser = ResourceId::parse)]
    pub delete: Vec<ResourceId>,

    /// With --delete: minimum age of what is deleted, such as 30d.
    #[arg(long, value_parser = duration, requires = "delete")]
    pub older_than: Option<Duration>,

    /// With --delete: skip the confirmation.
    #[arg(long, requires = "delete")]
    pub yes: bool,
}
