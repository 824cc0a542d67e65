//! The command line: one subcommand per role; every setting is also an environment variable.

use std::path::{Component, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};

mod bundle;
mod credential;
mod doctor;
mod endpoint;
mod explain;
mod http;
mod kubectl;
mod kubernetes;
mod leader_election;
mod log;
mod node;
mod operator;
mod orphans;
mod output;
mod pre_stop_hook;
mod program;
mod rate_limits;
mod timeline;

pub use bundle::Bundle;
pub use credential::{CredentialArgs, Selection};
pub use doctor::{Doctor, NodeDoctor, Scope};
use ecs::endpoint::Network;
use ecs::metadata::DEFAULT_ENDPOINT;
use ecs::rate_limit::{ConfiguredLimit, ConfiguredLimits};
use ecs::sign::Scheme;
pub use explain::Explain;
pub use http::{HttpArgs, HttpAuthorization, PageArgs};
pub use kubectl::{OPERATOR_COMMANDS, PLUGIN};
pub use kubernetes::KubernetesArgs;
pub use leader_election::LeaderElectionArgs;
pub use log::LogArgs;
pub use node::{NodeArgs, NodeDirectoryArgs};
pub use operator::{KubeconfigArgs, ProcessArgs};
pub use orphans::Orphans;
pub use output::OutputFormat;
pub use pre_stop_hook::PreStopHook;
pub use program::{Cli, ControllerCli, ControllerProgramRole, NodeCli, NodeProgramRole, Role, parse, parse_program};
pub use timeline::Timeline;

use self::endpoint::url;
use crate::csi::socket::Endpoint;
use crate::model::driver::DRIVER;
use crate::model::{Bytes, Category, ClusterId, DriverName, RegionId, ZoneId};

#[derive(Debug, Args)]
pub struct DriverArgs {
    /// Name under which the driver is registered. Two drivers in one cluster need different names
    /// and different cluster IDs.
    #[arg(long, env = "DISKPLUGIN_DRIVER_NAME", default_value = DRIVER)]
    pub driver_name: DriverName,
}

/// Settings of the CSI server of a role.
#[derive(Debug, Args)]
pub struct ServerArgs {
    #[command(flatten)]
    pub driver: DriverArgs,

    /// The CSI socket: unix:///absolute/path.
    #[arg(long, env = "DISKPLUGIN_ENDPOINT", default_value = "unix:///csi/csi.sock")]
    pub endpoint: Endpoint,

    /// How long running calls may take to finish after SIGTERM.
    #[arg(long, env = "DISKPLUGIN_DRAIN_TIMEOUT", default_value = "25s", value_parser = duration)]
    pub drain_timeout: Duration,

    #[command(flatten, next_help_heading = "Options for the HTTP port")]
    pub http: HttpArgs,
}

#[derive(Debug, Args)]
pub struct LocationArgs {
    /// Region of the disks. Default: from the instance metadata service.
    #[arg(long, env = "DISKPLUGIN_REGION")]
    pub region: Option<RegionId>,

    /// Zone of the node; for the controller, the zone of disks for which neither topology nor StorageClass
    /// names a zone. Default: from the instance metadata service.
    #[arg(long, env = "DISKPLUGIN_ZONE")]
    pub zone: Option<ZoneId>,

    /// URL of the instance metadata service.
    #[arg(long, env = "DISKPLUGIN_METADATA_ENDPOINT", default_value = DEFAULT_ENDPOINT,
          value_parser = url())]
    pub metadata_endpoint: String,

    /// Use only the token mode of the instance metadata service (IMDSv2);
    /// also set by ALIBABA_CLOUD_IMDSV1_DISABLED.
    #[arg(long, env = "DISKPLUGIN_METADATA_TOKEN_ONLY")]
    pub metadata_token_only: bool,
}

#[derive(Debug, Args)]
pub struct CloudArgs {
    /// URL of the ECS API. Default: the endpoint of the region.
    #[arg(long, env = "DISKPLUGIN_ECS_ENDPOINT", value_parser = url())]
    pub ecs_endpoint: Option<String>,

    /// Network through which the API endpoint of the region is reached, unless --ecs-endpoint is set.
    #[arg(long, env = "DISKPLUGIN_NETWORK", value_enum, default_value_t)]
    pub network: Network,

    /// Signature version of cloud requests.
    #[arg(long, env = "DISKPLUGIN_SIGNATURE", value_enum, default_value_t)]
    pub signature: Scheme,

    /// The most calls per second of actions, or of all calls as account, such as DescribeDisks=5,account=20: for a
    /// quota that other programs of the account share. Default: only the quotas that throttling errors show.
    #[arg(long, env = "DISKPLUGIN_RATE_LIMITS", value_name = "ACTION=RATE", value_delimiter = ',',
          value_parser = rate_limits::rate_limit)]
    pub rate_limits: Vec<ConfiguredLimit>,

    #[command(flatten)]
    pub credentials: CredentialArgs,
}

impl CloudArgs {
    /// The configured limits.
    ///
    /// # Errors
    /// An action has two limits.
    pub fn limits(&self) -> Result<ConfiguredLimits, String> {
        rate_limits::by_action(&self.rate_limits)
            .map_err(|action| format!("--rate-limits has several limits of {action}; allowed: one of each action"))
    }
}

#[derive(Debug, Args)]
pub struct OwnerArgs {
    /// ID of this cluster, unique in the account. Disks and snapshots are tagged with it; the driver lists and
    /// deletes only those with this tag.
    #[arg(long, env = "DISKPLUGIN_CLUSTER_ID")]
    pub cluster_id: Option<ClusterId>,
}

#[derive(Debug, Args)]
pub struct Controller {
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

    #[command(flatten, next_help_heading = "Options for the Kubernetes API server")]
    pub kubernetes: KubernetesArgs,
}

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

#[cfg(feature = "mock-cloud")]
#[derive(Debug, Args)]
pub struct MockCloud {
    /// Address to listen on. The control path has no authentication and is served
    /// only on a loopback address.
    #[arg(long, env = "DISKPLUGIN_LISTEN", default_value = "127.0.0.1:8480")]
    pub listen: std::net::SocketAddr,
    /// Region that the fake cloud simulates.
    #[arg(long, env = "DISKPLUGIN_REGION", default_value = "cn-beijing")]
    pub region: RegionId,
    #[command(flatten)]
    pub mock: fake_ecs::Options,
}

#[cfg(feature = "mock-cloud")]
#[derive(Debug, Args)]
pub struct Demo {
    /// Filesystem of the volume. Default: ext4 if this machine can grow a mounted one, otherwise xfs.
    #[arg(long)]
    pub fs_type: Option<crate::model::Filesystem>,
    /// Signature version of cloud requests.
    #[arg(long, env = "DISKPLUGIN_SIGNATURE", value_enum, default_value_t)]
    pub signature: Scheme,
    /// Keep everything running at the end and print the endpoints, until Ctrl-C.
    #[arg(long)]
    pub keep: bool,
}

/// An absolute path without `..`, and not the root.
fn directory(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let ascends = path.components().any(|part| part == Component::ParentDir);
    if !path.is_absolute() || ascends || path.file_name().is_none() {
        return Err("allowed: an absolute path without \"..\", and not the root".to_owned());
    }
    Ok(path.components().collect())
}

fn category(text: &str) -> Result<Category, String> {
    let name = text.trim().to_ascii_lowercase();
    let mut known = Category::KNOWN.into_iter();
    known.find(|category| category.as_str() == name).ok_or_else(|| {
        let names: Vec<_> = Category::KNOWN.iter().map(Category::as_str).collect();
        format!("allowed: {}", names.join(", "))
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
        .ok_or_else(|| "allowed: a whole number with Ki, Mi or Gi, at least 16Mi".to_owned())
}

/// The time between two repetitions; none if there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval(pub Option<Duration>);

fn interval(text: &str) -> Result<Interval, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Ok(Interval(None)),
        Ok(interval) if interval >= Duration::from_secs(10) => Ok(Interval(Some(interval))),
        _ => Err("allowed: a duration such as 5m, at least 10s, or 0s for never".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed = humantime::parse_duration(text);
    parsed.map_err(|_| "allowed: a duration such as 500ms, 25s, 2m or 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn memory_is_a_number_with_a_unit_and_a_minimum() {
        assert_eq!(memory("256Mi"), Ok(Bytes(256 << 20)));
        assert_eq!(memory("33554432"), Ok(Bytes(32 << 20)));
        for text in ["", "Mi", "1Mi", "256M", "-1Gi", "99999999999Gi"] {
            assert!(memory(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_directory_is_absolute_and_not_the_root() {
        for text in ["", "kubelet", "/", "/var/../etc"] {
            assert!(directory(text).is_err(), "{text}");
        }
        let path = directory("/var/lib//kubelet/").unwrap();
        assert_eq!(path.to_str(), Some("/var/lib/kubelet"));
    }

    #[test]
    fn the_command_line_passes_claps_checks() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_of_a_role_has_an_environment_variable() {
        let command = Cli::command();
        for role in ["controller", "node"] {
            let role = command.find_subcommand(role).expect("the role exists");
            for arg in role.get_arguments().filter(|arg| arg.get_id() != "help") {
                let long = arg.get_long().expect("every flag has a long name");
                let wanted = match long {
                    // Set by the downward API, as for the sidecars.
                    "leader-election-identity" => "POD_NAME".to_owned(),
                    "leader-election-namespace" => "POD_NAMESPACE".to_owned(),
                    long => format!("DISKPLUGIN_{}", long.to_uppercase().replace('-', "_")),
                };
                assert_eq!(arg.get_env().and_then(|v| v.to_str()), Some(wanted.as_str()), "{long}");
            }
        }
    }
}
