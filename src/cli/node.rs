//! Flags of `node`, and those of a node.

use std::path::PathBuf;

use clap::Args;

use super::parse::{category, directory, memory};
use super::{LocationArgs, ServerArgs};
use crate::model::{Bytes, Category, InstanceId};

#[derive(Debug, Args)]
pub struct Node {
    #[command(flatten)]
    pub server: ServerArgs,
    #[command(flatten)]
    pub location: LocationArgs,
    #[command(flatten)]
    pub node: NodeArgs,
    /// Only with the fake cloud: directory of the links to this node's loop devices,
    /// DIR/nodes/NODE-ID of `mock-cloud --device-dir DIR`.
    #[arg(long, env = "DISKPLUGIN_DEVICE_DIR")]
    pub device_dir: Option<PathBuf>,
    /// Require that --kubelet-dir is on a shared mount, so that kubelet has the mounts of the driver, and otherwise
    /// fail to start. Default: a node that registers logs a warning.
    #[arg(long, env = "DISKPLUGIN_REQUIRE_SHARED_MOUNTS")]
    pub require_shared_mounts: bool,
}

#[derive(Debug, Args)]
pub struct NodeArgs {
    /// Instance ID of the node. Default: from the instance metadata service.
    #[arg(long, env = "DISKPLUGIN_NODE_ID")]
    pub node_id: Option<InstanceId>,

    /// Maximum number of volumes on the node, 1 or more. Default: MAX_VOLUMES_PERNODE, then
    /// --instance-types-file; otherwise the node reports no limit.
    #[arg(long, env = "DISKPLUGIN_MAX_VOLUMES_PER_NODE",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub max_volumes_per_node: Option<u32>,

    /// Instance type of the node, such as ecs.g6.large.
    /// Default: from the instance metadata service, if --instance-types-file is set.
    #[arg(long, env = "DISKPLUGIN_INSTANCE_TYPE")]
    pub instance_type: Option<String>,

    /// File with the attachment limits of instance types: number and categories of disks, in the format of the
    /// controller's ConfigMap. It may appear after the start: every NodeGetInfo reads it, and --state-dir keeps the
    /// last content. --max-volumes-per-node and --instance-categories take precedence.
    #[arg(long, env = "DISKPLUGIN_INSTANCE_TYPES_FILE")]
    pub instance_types_file: Option<PathBuf>,

    /// Disk categories that the instance type of the node supports, separated by commas. They become topology
    /// segments, which scheduler and driver respect. Default: any category.
    #[arg(long, env = "DISKPLUGIN_INSTANCE_CATEGORIES", value_delimiter = ',',
          value_parser = category)]
    pub instance_categories: Vec<Category>,

    /// Memory that each filesystem tool (mkfs, e2fsck, resize2fs) may use, such as 256Mi: a tool that needs more fails.
    /// Default: the memory limit of the cgroup less 32 MiB; none without a limit.
    #[arg(long, env = "DISKPLUGIN_TOOL_MEMORY", value_parser = memory)]
    pub tool_memory: Option<Bytes>,

    #[command(flatten)]
    pub directories: NodeDirectoryArgs,

    /// Directory plugins_registry of kubelet. The driver registers itself there, without node-driver-registrar.
    /// Default: it does not register itself.
    #[arg(long, env = "DISKPLUGIN_REGISTRATION_DIR", value_parser = directory)]
    pub registration_dir: Option<PathBuf>,

    /// Path of the CSI socket on the host, reported to kubelet with --registration-dir. Default: the path of
    /// --endpoint.
    #[arg(long, env = "DISKPLUGIN_KUBELET_SOCKET", value_parser = directory,
          requires = "registration_dir")]
    pub kubelet_socket: Option<PathBuf>,
}

/// The directories of a node.
#[derive(Debug, Args)]
pub struct NodeDirectoryArgs {
    /// The --root-dir of kubelet: volumes are staged and published only below it. The directory may be a symlink;
    /// symlinks below it are not followed.
    #[arg(
        long,
        env = "DISKPLUGIN_KUBELET_DIR",
        default_value = "/var/lib/kubelet",
        value_parser = directory
    )]
    pub kubelet_dir: PathBuf,

    /// Directory of the state that the node needs after a restart, created on the first write.
    #[arg(long, env = "DISKPLUGIN_STATE_DIR", default_value = "/var/lib/diskplugin")]
    pub state_dir: PathBuf,
}
