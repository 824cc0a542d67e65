//! Flags of `diskplugin import`.

use clap::Args;

use crate::cli::parse::object_name;
use crate::model::{DiskId, Filesystem};
use crate::ops::kubeconfig::OperatorArgs;

#[derive(Debug, Args)]
pub struct Flags {
    /// ID of the disk.
    pub disk: DiskId,

    /// Name of the claim. Default: that in the disk's tag kubernetes.io/created-for/pvc/name, or else the disk ID.
    #[arg(long, value_parser = object_name)]
    pub claim: Option<String>,

    /// Namespace of the claim. Default: that in the disk's tag kubernetes.io/created-for/pvc/namespace, or else
    /// default.
    #[arg(long, value_parser = object_name)]
    pub namespace: Option<String>,

    /// StorageClass of volume and claim, such as one that allows expansion. Default: none.
    #[arg(long, value_parser = object_name)]
    pub storage_class: Option<String>,

    /// Filesystem that the disk has; a blank disk is formatted with it.
    #[arg(long, default_value_t)]
    pub fs_type: Filesystem,

    /// Raw block volume instead of a filesystem. A multi-attach disk is then available to several nodes.
    #[arg(long, conflicts_with = "fs_type")]
    pub block: bool,

    /// Tag the disk with --cluster-id, so that the driver lists it and may delete it, and disable its deletion with the
    /// instance that it is attached to. By default, the cloud is only read.
    #[arg(long)]
    pub adopt: bool,

    #[command(flatten)]
    pub common: OperatorArgs,
}
