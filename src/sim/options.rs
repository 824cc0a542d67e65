//! The command line of the fake cloud.

use std::path::PathBuf;
use std::str::FromStr;

use super::config::{Config, Delays, Metadata, Stale};
use super::credential::Keys;
use super::instance::NodeSpec;
use super::latency::LatencySetting;
use super::spread::Spread;
use super::stock::SoldOut;
use super::throttle::Limits;
use super::world::Genesis;
use crate::model::ZoneId;

/// The access key where none is given.
pub const DEFAULT_KEY: &str = "LTAI5tFAKECLOUDKEY000001";

/// The secret where none is given. It protects nothing, so it is shown.
pub const DEFAULT_SECRET: &str = "fake-cloud-secret";

/// What a fake cloud is started with. Delays are one duration (`500ms`), a range
/// (`1s..5s`) or lognormal (`lognormal:60ms,0.6`).
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The region that it plays; a flag of each role's own.
    #[arg(skip = "cn-beijing".to_owned())]
    pub region: String,

    /// Its zones, separated by commas; unset, REGION-a, REGION-b and REGION-c.
    #[arg(long, value_delimiter = ',', value_parser = plain::<ZoneId>)]
    pub zones: Vec<String>,

    /// Its instances: their number, put into the zones in turn, or a list, separated by commas, of
    /// ID, ID=ZONE, ID=TYPE or ID=ZONE=TYPE. Ids begin with i-, types with ecs.
    #[arg(long, default_value = "2")]
    pub nodes: Nodes,

    /// Seed of all that is drawn: ids, durations, choices between documented answers.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Access key that signs valid requests.
    #[arg(long, default_value = DEFAULT_KEY)]
    pub access_key_id: Secret,

    /// Its secret. The default protects nothing.
    #[arg(long, default_value = DEFAULT_SECRET)]
    pub access_key_secret: Secret,

    /// How long a disk is Creating: 2s, or 1s..5s for a time drawn for each.
    #[arg(long, default_value = "0s")]
    pub create_delay: Spread,

    /// How long a disk is Attaching.
    #[arg(long, default_value = "0s")]
    pub attach_delay: Spread,

    /// How long a disk is Detaching.
    #[arg(long, default_value = "0s")]
    pub detach_delay: Spread,

    /// How long until a new size shows.
    #[arg(long, default_value = "0s")]
    pub resize_delay: Spread,

    /// How long until the point in time of a snapshot is cut.
    #[arg(long, default_value = "0s")]
    pub cut_delay: Spread,

    /// How long until a snapshot is accomplished.
    #[arg(long, default_value = "0s")]
    pub snapshot_delay: Spread,

    /// How long until a deleted disk frees its file and its quota; it is hidden at once.
    #[arg(long, default_value = "0s")]
    pub delete_delay: Spread,

    /// How long a disk made from a snapshot refuses deletion.
    #[arg(long, default_value = "0s")]
    pub load_delay: Spread,

    /// How long a call takes: 60ms, 50ms..500ms or lognormal:MEDIAN,SIGMA; ACTION=60ms for one
    /// action. Calls read and change the state on arrival, unless effect=departure. May be repeated.
    #[arg(long, alias = "answer-delay", value_name = "LATENCY")]
    pub latency: Vec<LatencySetting>,

    /// How old what lists show is.
    #[arg(long, default_value = "0s")]
    pub stale: Spread,

    /// Draw an age within --stale for each list: a new value may be followed by an old one.
    #[arg(long)]
    pub stale_jumping: bool,

    /// How many lists in a hundred are stale; the others are up to date. Unset, all are.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(..=100))]
    pub stale_share: Option<u8>,

    /// Calls allowed, separated by commas: QUOTA for each action, ACTION=QUOTA for one, user=QUOTA for
    /// all together; a QUOTA is N a minute, or such as 10/1s. mode=window (of the clock, default) or
    /// mode=bucket, burst=N for buckets, headers=off to answer without x-ratelimit headers.
    #[arg(long)]
    pub throttle: Option<Limits>,

    /// ZONE/CATEGORY that cannot be bought, separated by commas; either may be *.
    #[arg(long, value_delimiter = ',')]
    pub sold_out: Vec<SoldOut>,

    /// How many disks an instance takes, its system disk included, whatever its type says.
    #[arg(long)]
    pub disk_quantity: Option<u32>,

    /// Refuse snapshots of a disk that was never attached, as the real cloud does.
    #[arg(long)]
    pub never_attached: bool,

    /// Answer the deletion of what is not there with an error instead of success.
    #[arg(long)]
    pub missing_is_error: bool,

    /// Let attachments and detachments of one instance run side by side.
    #[arg(long)]
    pub parallel_attach: bool,

    /// RAM role whose credentials the instance metadata service hands out.
    #[arg(long, default_value = "diskplugin-node")]
    pub ram_role: String,

    /// Let the metadata service answer only requests that carry a token.
    #[arg(long)]
    pub metadata_token_required: bool,

    /// What stands behind an attached disk.
    #[arg(long, value_enum, default_value_t = Backing::None)]
    pub back_with: Backing,

    /// Directory of the disks' files and of the nodes' links to devices, with --back-with loop.
    #[arg(long, required_if_eq("back_with", "loop"))]
    pub device_dir: Option<PathBuf>,

    /// More configuration, as the JSON that the control path shows and takes.
    #[arg(long, value_parser = json)]
    pub config: Option<serde_json::Value>,
}

/// What stands behind an attached disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Backing {
    /// Nothing: disks are facts only.
    None,
    /// A loop device for each attached disk. Needs root.
    Loop,
}

/// The instances of a fake cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes(pub Vec<NodeSpec>);

impl FromStr for Nodes {
    type Err = super::instance::InvalidNode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(count) = text.trim().parse() {
            return Ok(Self(vec![NodeSpec::default(); count]));
        }
        let specs = text.split(',').map(str::parse);
        specs.collect::<Result<_, _>>().map(Self)
    }
}

/// A secret that does not print.
#[derive(Clone)]
pub struct Secret(secrecy::SecretString);

impl Secret {
    /// The text.
    #[must_use]
    pub fn expose(&self) -> &str {
        secrecy::ExposeSecret::expose_secret(&self.0)
    }
}

impl FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned().into()))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[REDACTED]")
    }
}

impl Options {
    /// The zones, as given or as the region's.
    #[must_use]
    pub fn zones(&self) -> Vec<String> {
        if self.zones.is_empty() {
            return ["a", "b", "c"]
                .map(|zone| format!("{}-{zone}", self.region))
                .to_vec();
        }
        self.zones.clone()
    }
}

fn plain<T: FromStr<Err = crate::model::InvalidId>>(text: &str) -> Result<String, T::Err> {
    text.parse::<T>().map(|_| text.to_owned())
}

fn json(text: &str) -> Result<serde_json::Value, String> {
    let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let config = Config::default().patched(&value);
    config
        .map(|_| value)
        .map_err(|error| crate::base::chain::chain(&error))
}

/// The options that an empty command line gives.
impl Default for Options {
    fn default() -> Self {
        Self::from_flags([]).expect("every option has a default")
    }
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

impl Options {
    /// The options of a command line, without the name of a program.
    ///
    /// # Errors
    /// When a flag is unknown or its value cannot be read.
    pub fn from_flags<'a>(flags: impl IntoIterator<Item = &'a str>) -> Result<Self, clap::Error> {
        let line = ["mock-cloud"].into_iter().chain(flags);
        <Line as clap::Parser>::try_parse_from(line).map(|line| line.options)
    }

    pub(crate) fn keys(&self) -> Keys {
        Keys {
            id: self.access_key_id.clone(),
            secret: self.access_key_secret.clone(),
            seed: self.seed,
        }
    }

    pub(crate) fn genesis(&self) -> Genesis {
        let mut config = Config {
            delays: Delays {
                create: self.create_delay,
                attach: self.attach_delay,
                detach: self.detach_delay,
                resize: self.resize_delay,
                cut: self.cut_delay,
                snapshot: self.snapshot_delay,
                delete: self.delete_delay,
                load: self.load_delay,
                ..Delays::default()
            },
            latency: self.latency.iter().cloned().collect(),
            stale: Stale {
                lag: self.stale,
                jumping: self.stale_jumping,
                percent: self.stale_share,
                ..Stale::default()
            },
            throttle: self.throttle.clone().unwrap_or_default(),
            sold_out: self.sold_out.clone(),
            metadata: Metadata {
                role: Some(self.ram_role.clone()).filter(|role| !role.is_empty()),
                token_required: self.metadata_token_required,
                ..Metadata::default()
            },
            ..Config::default()
        };
        config.rules.disk_quantity = self.disk_quantity;
        config.rules.never_attached = self.never_attached;
        config.rules.missing_is_error = self.missing_is_error;
        config.rules.one_at_a_time = !self.parallel_attach;
        if let Some(patch) = &self.config {
            config = config
                .patched(patch)
                .expect("it was tried when the command line was read");
        }
        Genesis {
            region: self.region.clone(),
            zones: self.zones(),
            nodes: self.nodes.0.clone(),
            seed: self.seed,
            backed: self.back_with == Backing::Loop,
            config,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::quota::Quota;

    #[test]
    fn flags_become_configuration() {
        let options = Options::from_flags([
            "--attach-delay=1s..5s",
            "--throttle=60,user=600",
            "--latency=lognormal:60ms,0.6",
            "--latency=AttachDisk=0.3s",
            "--sold-out=*/cloud_ssd,cn-beijing-a/*",
            "--nodes=3",
            "--parallel-attach",
            r#"--config={"rules":{"never_attached":true}}"#,
        ]);
        let genesis = options.unwrap().genesis();
        assert_eq!(genesis.config.delays.attach.to_string(), "1s..5s");
        let latency = &genesis.config.latency;
        assert_eq!(latency.all.to_string(), "lognormal:60ms,0.6");
        assert_eq!(latency.actions["AttachDisk"].to_string(), "300ms");
        assert_eq!(genesis.config.throttle.user, Some(Quota::a_minute(600)));
        assert_eq!(genesis.config.sold_out.len(), 2);
        assert_eq!(genesis.nodes.len(), 3);
        assert!(!genesis.config.rules.one_at_a_time);
        assert!(genesis.config.rules.never_attached);
    }

    #[test]
    fn loop_backing_needs_a_directory() {
        assert!(Options::from_flags(["--back-with=loop"]).is_err());
        assert!(Options::from_flags(["--back-with=loop", "--device-dir=/tmp/x"]).is_ok());
    }

    #[test]
    fn neither_key_nor_secret_prints() {
        let flags = ["--access-key-id=hush-key", "--access-key-secret=hush-hush"];
        let options = Options::from_flags(flags).unwrap();
        assert!(!format!("{options:?}").contains("hush"));
    }

    #[test]
    fn a_list_of_nodes_names_each() {
        let options = Options::from_flags(["--nodes=i-1=cn-beijing-c,i-2"]).unwrap();
        let ids: Vec<_> = options.nodes.0.iter().map(|n| n.id.as_deref()).collect();
        assert_eq!(ids, [Some("i-1"), Some("i-2")]);
    }
}
