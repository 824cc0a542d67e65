//! What a node knows of itself.

use std::path::PathBuf;

use clap::Args;

use super::{category, directory, memory};
use crate::model::{Bytes, Category, InstanceId};

/// What a node knows of itself.
#[derive(Debug, Args)]
pub struct NodeSelf {
    /// Instance id of this node; unset, it comes from the instance metadata service.
    #[arg(long, env = "DISKPLUGIN_NODE_ID")]
    pub node_id: Option<InstanceId>,

    /// How many volumes this node takes, 1 or more; unset, MAX_VOLUMES_PERNODE counts, then
    /// --instance-types-file, and without these the cluster is told no limit.
    #[arg(long, env = "DISKPLUGIN_MAX_VOLUMES_PER_NODE",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub max_volumes_per_node: Option<u32>,

    /// The node's instance type, such as ecs.g6.large; unset, it comes from the instance metadata
    /// service, where --instance-types-file is set.
    #[arg(long, env = "DISKPLUGIN_INSTANCE_TYPE")]
    pub instance_type: Option<String>,

    /// File that says how many disks each instance type takes, and of which categories, as `controller
    /// --publish-instance-types` writes it. It is read each time the node is asked, so it may come
    /// later; what it said last is kept in --state-dir. What --max-volumes-per-node and --instance-categories say goes before it.
    #[arg(long, env = "DISKPLUGIN_INSTANCE_TYPES_FILE")]
    pub instance_types_file: Option<PathBuf>,

    /// Categories of disks that this node's instance type takes, separated by commas. They become
    /// topology, so that scheduler and driver choose by them; unset, any category may go to the node.
    #[arg(long, env = "DISKPLUGIN_INSTANCE_CATEGORIES", value_delimiter = ',',
          value_parser = category)]
    pub instance_categories: Vec<Category>,

    /// Memory for the filesystem tools (mkfs, e2fsck, resize2fs) that run at once, such as 256Mi; others wait. Unset, it is
    /// what the control group's limit leaves beside 32 MiB of the node's own, and 256Mi where there is no limit.
    #[arg(long, env = "DISKPLUGIN_TOOL_MEMORY", value_parser = memory)]
    pub tool_memory: Option<Bytes>,

    /// kubelet's --root-dir: volumes are staged and published only below it. The directory itself may
    /// be a symlink; below it none is followed.
    #[arg(
        long,
        env = "DISKPLUGIN_KUBELET_DIR",
        default_value = "/var/lib/kubelet",
        value_parser = directory
    )]
    pub kubelet_dir: PathBuf,

    /// Directory of the records that the node needs after a restart; it is made when the first one is
    /// written.
    #[arg(
        long,
        env = "DISKPLUGIN_STATE_DIR",
        default_value = "/var/lib/diskplugin"
    )]
    pub state_dir: PathBuf,

    /// kubelet's directory plugins_registry, to register the driver in, so that no registrar is needed beside it.
    /// Unset, it does not register itself.
    #[arg(long, env = "DISKPLUGIN_REGISTRATION_DIR", value_parser = directory)]
    pub registration_dir: Option<PathBuf>,

    /// The CSI socket's path as kubelet finds it on the host, for --registration-dir; unset, that of --endpoint.
    #[arg(long, env = "DISKPLUGIN_KUBELET_SOCKET", value_parser = directory,
          requires = "registration_dir")]
    pub kubelet_socket: Option<PathBuf>,
}
