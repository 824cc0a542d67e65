//! The command line: one subcommand a role; each setting also as an environment variable.

use std::net::SocketAddr;
use std::path::{Component, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};

mod credential;
mod kubernetes;
mod node_self;
mod program;

pub use credential::Credentials;
pub use kubernetes::Kubernetes;
pub use node_self::NodeSelf;
pub use program::{Cli, Log, LogFormat, NodeCli, NodeRole, Role, parse};

use crate::cloud::endpoint::Network;
use crate::cloud::metadata::DEFAULT_ENDPOINT;
use crate::cloud::sign::Scheme;
use crate::cloud::transport::{BuildError, check_endpoint};
use crate::csi::socket::Endpoint;
use crate::model::driver::DRIVER;
use crate::model::{Bytes, Category, ClusterId, DiskId, DriverName, RegionId, ZoneId};

/// What a role is called, where it listens and how it ends.
#[derive(Debug, Args)]
pub struct Serve {
    /// The name under which the driver is registered. Two drivers of one cluster need two names, and two cluster
    /// ids.
    #[arg(long, env = "DISKPLUGIN_DRIVER_NAME", default_value = DRIVER)]
    pub driver_name: DriverName,

    /// The CSI socket: unix:///absolute/path.
    #[arg(
        long,
        env = "DISKPLUGIN_ENDPOINT",
        default_value = "unix:///csi/csi.sock"
    )]
    pub endpoint: Endpoint,

    /// How long running calls may take to finish after SIGTERM.
    #[arg(long, env = "DISKPLUGIN_DRAIN_TIMEOUT", default_value = "25s", value_parser = duration)]
    pub drain_timeout: Duration,

    /// Address and port, such as 0.0.0.0:9808, to serve /healthz and /readyz on over HTTP; unset, they are not served.
    #[arg(long, env = "DISKPLUGIN_HTTP_ADDRESS", value_parser = address)]
    pub http_address: Option<SocketAddr>,
}

/// Where in the cloud a role is.
#[derive(Debug, Args)]
pub struct Place {
    /// Region of the disks; unset, it comes from the instance metadata service.
    #[arg(long, env = "DISKPLUGIN_REGION")]
    pub region: Option<RegionId>,

    /// The node's own zone; for the controller, the zone of disks that neither topology nor
    /// StorageClass places. Unset, it comes from the instance metadata service.
    #[arg(long, env = "DISKPLUGIN_ZONE")]
    pub zone: Option<ZoneId>,

    /// URL of the instance metadata service.
    #[arg(long, env = "DISKPLUGIN_METADATA_ENDPOINT", default_value = DEFAULT_ENDPOINT,
          value_parser = url)]
    pub metadata_endpoint: String,

    /// Ask the instance metadata service for nothing without a token; set by
    /// ALIBABA_CLOUD_IMDSV1_DISABLED too.
    #[arg(long, env = "DISKPLUGIN_METADATA_TOKEN_ONLY")]
    pub metadata_token_only: bool,
}

/// How the cloud is reached.
#[derive(Debug, Args)]
pub struct Cloud {
    /// URL of the ECS API; unset, that of the region.
    #[arg(long, env = "DISKPLUGIN_ECS_ENDPOINT", value_parser = url)]
    pub ecs_endpoint: Option<String>,

    /// The network over which the region's API is reached, where --ecs-endpoint is unset.
    #[arg(long, env = "DISKPLUGIN_NETWORK", value_enum, default_value_t)]
    pub network: Network,

    /// How requests to the cloud are signed.
    #[arg(long, env = "DISKPLUGIN_SIGNATURE", value_enum, default_value_t)]
    pub signature: Scheme,

    /// Where credentials come from.
    #[command(flatten)]
    pub credentials: Credentials,
}

/// Whose disks these are.
#[derive(Debug, Args)]
pub struct Owner {
    /// Name of this cluster, unlike that of any other cluster of the account. It goes into a tag of
    /// each disk and snapshot; only what carries it is listed and deleted.
    #[arg(long, env = "DISKPLUGIN_CLUSTER_ID")]
    pub cluster_id: Option<ClusterId>,
}

/// `controller`
#[derive(Debug, Args)]
pub struct Controller {
    /// Where it listens.
    #[command(flatten)]
    pub serve: Serve,
    /// Where it is.
    #[command(flatten)]
    pub place: Place,
    /// What it calls.
    #[command(flatten)]
    pub cloud: Cloud,
    /// Whose disks.
    #[command(flatten)]
    pub owner: Owner,

    /// File to write what each instance type takes of which the region has a machine, for
    /// --instance-types-file of the nodes: at the start, and every 10 minutes when it has changed.
    #[arg(long, env = "DISKPLUGIN_PUBLISH_INSTANCE_TYPES")]
    pub publish_instance_types: Option<PathBuf>,

    /// The API server.
    #[command(flatten, next_help_heading = "With the API server of a cluster")]
    pub kubernetes: Kubernetes,
}

/// `node`
#[derive(Debug, Args)]
pub struct Node {
    /// Where it listens.
    #[command(flatten)]
    pub serve: Serve,
    /// Where it is.
    #[command(flatten)]
    pub place: Place,
    /// Who it is.
    #[command(flatten)]
    pub own: NodeSelf,
    /// Only with the fake cloud: directory of this node's links to loop devices, which is
    /// DIR/nodes/NODE-ID of `mock-cloud --device-dir DIR`.
    #[arg(long, env = "DISKPLUGIN_DEVICE_DIR")]
    pub device_dir: Option<PathBuf>,
    /// Start only where kubelet sees what is mounted below --kubelet-dir: where that is on shared mounts. Without it, a node that
    /// registers only warns.
    #[arg(long, env = "DISKPLUGIN_REQUIRE_SHARED_MOUNTS")]
    pub require_shared_mounts: bool,
}

/// `mark`
#[derive(Debug, Args)]
pub struct Mark {
    /// The disk.
    #[arg(required_unless_present = "list", conflicts_with = "list")]
    pub disk: Option<DiskId>,

    /// Its device, such as /dev/vdb.
    #[arg(required_unless_present_any = ["list", "remove"], conflicts_with_all = ["list", "remove"])]
    pub device: Option<PathBuf>,

    /// Forget the mark of the disk; what is mounted stays mounted.
    #[arg(long, conflicts_with = "list")]
    pub remove: bool,

    /// Show all marks of this node, and whether they still count.
    #[arg(long)]
    pub list: bool,

    /// Directory of the records that the node needs after a restart; it is made when the first one is
    /// written.
    #[arg(
        long,
        env = "DISKPLUGIN_STATE_DIR",
        default_value = "/var/lib/diskplugin"
    )]
    pub state_dir: PathBuf,
}

/// Which cloud `all-in-one` uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Which {
    /// The real one, or what `--ecs-endpoint` names.
    #[default]
    Real,
    /// An embedded fake cloud.
    #[cfg(feature = "mock-cloud")]
    Mock,
}

/// `all-in-one`
#[derive(Debug, Args)]
pub struct AllInOne {
    /// Where it listens.
    #[command(flatten)]
    pub serve: Serve,
    /// Where it is.
    #[command(flatten)]
    pub place: Place,
    /// What it calls.
    #[command(flatten)]
    pub cloud: Cloud,
    /// Whose disks.
    #[command(flatten)]
    pub owner: Owner,
    /// Who it is.
    #[command(flatten)]
    pub own: NodeSelf,
    /// Which cloud it uses.
    #[arg(long = "cloud", env = "DISKPLUGIN_CLOUD", value_enum, default_value_t)]
    pub which: Which,
    /// The fake cloud's options, with `--cloud mock`.
    #[cfg(feature = "mock-cloud")]
    #[command(flatten, next_help_heading = "With --cloud mock")]
    pub mock: crate::sim::Options,
}

/// `mock-cloud`
#[cfg(feature = "mock-cloud")]
#[derive(Debug, Args)]
pub struct MockCloud {
    /// Address to serve. The control path asks for no password and answers only on a loopback
    /// address.
    #[arg(long, env = "DISKPLUGIN_LISTEN", default_value = "127.0.0.1:8480")]
    pub listen: std::net::SocketAddr,
    /// The region that it plays.
    #[arg(long, env = "DISKPLUGIN_REGION", default_value = "cn-beijing")]
    pub region: RegionId,
    /// The cloud.
    #[command(flatten)]
    pub mock: crate::sim::Options,
}

/// `demo`
#[cfg(feature = "mock-cloud")]
#[derive(Debug, Args)]
pub struct Demo {
    /// Filesystem of the volume; unset, ext4 where this machine can grow it mounted, else xfs.
    #[arg(long)]
    pub fs_type: Option<crate::model::Filesystem>,
    /// How requests to the cloud are signed.
    #[arg(long, env = "DISKPLUGIN_SIGNATURE", value_enum, default_value_t)]
    pub signature: Scheme,
    /// Leave everything up at the end, and say how to talk to it; Ctrl-C takes it down.
    #[arg(long)]
    pub keep: bool,
}

fn url(text: &str) -> Result<String, BuildError> {
    check_endpoint(text).map(|()| text.to_owned())
}

/// An absolute directory that is not the root, without `..`.
fn directory(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let ascends = path.components().any(|part| part == Component::ParentDir);
    if !path.is_absolute() || ascends || path.file_name().is_none() {
        return Err("allowed is an absolute path without \"..\", and not the root".to_owned());
    }
    Ok(path.components().collect())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let allowed = "allowed is ADDRESS:PORT, such as 0.0.0.0:9808 or [::]:9808 for all addresses";
    text.parse().map_err(|_| allowed.to_owned())
}

fn category(text: &str) -> Result<Category, String> {
    let name = text.trim().to_ascii_lowercase();
    let mut known = Category::KNOWN.into_iter();
    known
        .find(|category| category.as_str() == name)
        .ok_or_else(|| {
            let names: Vec<_> = Category::KNOWN.iter().map(Category::as_str).collect();
            format!("allowed are {}", names.join(", "))
        })
}

fn memory(text: &str) -> Result<Bytes, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => Some(1),
        "Ki" => Some(1 << 10),
        "Mi" => Some(1 << 20),
        "Gi" => Some(1 << 30),
        _ => None,
    };
    let number: Option<u64> = digits.parse().ok();
    unit.zip(number)
        .and_then(|(unit, number)| number.checked_mul(unit))
        .filter(|&bytes| bytes >= 16 << 20)
        .map(Bytes)
        .ok_or_else(|| "allowed: a whole number with Ki, Mi or Gi, 16Mi or more".to_owned())
}

fn duration(text: &str) -> Result<Duration, humantime::DurationError> {
    humantime::parse_duration(text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn memory_is_a_number_with_a_unit_and_not_too_little() {
        assert_eq!(memory("256Mi"), Ok(Bytes(256 << 20)));
        assert_eq!(memory("33554432"), Ok(Bytes(32 << 20)));
        for text in ["", "Mi", "1Mi", "256M", "-1Gi", "99999999999Gi"] {
            assert!(memory(text).is_err(), "{text}");
        }
    }

    #[test]
    fn kubelets_directory_is_absolute_and_not_the_root() {
        for text in ["", "kubelet", "/", "/var/../etc"] {
            assert!(directory(text).is_err(), "{text}");
        }
        let path = directory("/var/lib//kubelet/").unwrap();
        assert_eq!(path.to_str(), Some("/var/lib/kubelet"));
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_setting_of_a_role_has_its_environment_variable() {
        let command = Cli::command();
        for role in ["controller", "node"] {
            let role = command.find_subcommand(role).expect("the role exists");
            for arg in role.get_arguments().filter(|arg| arg.get_id() != "help") {
                let long = arg.get_long().expect("every setting has a long name");
                let wanted = format!("DISKPLUGIN_{}", long.to_uppercase().replace('-', "_"));
                assert_eq!(
                    arg.get_env().and_then(|v| v.to_str()),
                    Some(wanted.as_str()),
                    "{long}"
                );
            }
        }
    }
}
