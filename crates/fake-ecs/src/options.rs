//! Command-line options of the fake cloud.

use std::path::PathBuf;
use std::str::FromStr;

use super::config::{Config, Delays, Metadata, Stale};
use super::credential::Keys;
use super::distribution::DurationDistribution;
use super::error_text::error_text;
use super::id::is_zone;
use super::instance::NodeSpec;
use super::latency::LatencySetting;
use super::secret::Secret;
use super::stock::OutOfStock;
use super::throttle::Limits;
use super::world::InitialState;

/// The default access key.
pub const DEFAULT_KEY: &str = "LTAI5tFAKECLOUDKEY000001";

/// The default secret. It protects nothing and is public.
pub const DEFAULT_SECRET: &str = "fake-cloud-secret";

/// Startup options. Delays are one duration (`500ms`), a range (`1s..5s`) or lognormal (`lognormal:60ms,0.6`).
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The simulated region; each role has its own flag for it.
    #[arg(skip = "cn-beijing".to_owned())]
    pub region: String,

    /// Zones, separated by commas. Default: REGION-a, REGION-b and REGION-c.
    #[arg(long, value_delimiter = ',', value_parser = zone)]
    pub zones: Vec<String>,

    /// Instances: their number, distributed over the zones in turn, or a comma-separated list of
    /// ID, ID=ZONE, ID=TYPE or ID=ZONE=TYPE. IDs start with i-, types with ecs.
    #[arg(long, default_value = "2")]
    pub nodes: Nodes,

    /// Seed of everything random: IDs, durations, choices between documented errors.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Access key ID of valid requests.
    #[arg(long, default_value = DEFAULT_KEY)]
    pub access_key_id: Secret,

    /// Secret of the access key. The default is public.
    #[arg(long, default_value = DEFAULT_SECRET)]
    pub access_key_secret: Secret,

    /// How long a disk is Creating: 2s, or 1s..5s to draw a duration for each.
    #[arg(long, default_value = "0s")]
    pub create_delay: DurationDistribution,

    /// How long a disk is Attaching.
    #[arg(long, default_value = "0s")]
    pub attach_delay: DurationDistribution,

    /// How long a disk is Detaching.
    #[arg(long, default_value = "0s")]
    pub detach_delay: DurationDistribution,

    /// How long until a new size is visible.
    #[arg(long, default_value = "0s")]
    pub resize_delay: DurationDistribution,

    /// How long until the point in time of a snapshot is captured.
    #[arg(long, default_value = "0s")]
    pub cut_delay: DurationDistribution,

    /// How long until a snapshot is accomplished.
    #[arg(long, default_value = "0s")]
    pub snapshot_delay: DurationDistribution,

    /// How long until a deleted disk releases its file and its quota. Lists omit it immediately.
    #[arg(long, default_value = "0s")]
    pub delete_delay: DurationDistribution,

    /// How long a disk created from a snapshot rejects deletion.
    #[arg(long, default_value = "0s")]
    pub load_delay: DurationDistribution,

    /// Latency of calls: 60ms, 50ms..500ms or lognormal:MEDIAN,SIGMA; ACTION=60ms for one action. Calls
    /// take effect on arrival, or at the end of the latency with effect=departure. Can be repeated.
    #[arg(long, alias = "answer-delay", value_name = "LATENCY")]
    pub latency: Vec<LatencySetting>,

    /// Age of the data in lists.
    #[arg(long, default_value = "0s")]
    pub stale: DurationDistribution,

    /// Draw an age up to --stale for each list, so that an old value can follow a new one.
    #[arg(long)]
    pub stale_jumping: bool,

    /// Percentage of lists that are stale; the others are up to date. Default: all.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(..=100))]
    pub stale_share: Option<u8>,

    /// Call quotas, separated by commas: QUOTA for each action, ACTION=QUOTA for one action,
    /// user=QUOTA for all actions together. A QUOTA is N per minute or has a period, such as 10/1s.
    /// Also mode=window (of the clock, default) or mode=bucket, burst=N for buckets, and
    /// headers=off to omit the x-ratelimit headers.
    #[arg(long)]
    pub throttle: Option<Limits>,

    /// ZONE/CATEGORY that is out of stock, separated by commas; either can be *.
    #[arg(long, value_delimiter = ',')]
    pub out_of_stock: Vec<OutOfStock>,

    /// Attach limit of every instance, including the system disk. Default: the limit of its type.
    #[arg(long)]
    pub disk_quantity: Option<u32>,

    /// Reject snapshots of a disk that was never attached, as the real cloud does.
    #[arg(long)]
    pub never_attached: bool,

    /// Return an error instead of success for the deletion of a missing resource.
    #[arg(long)]
    pub missing_is_error: bool,

    /// Let attach and detach operations of one instance run in parallel.
    #[arg(long)]
    pub parallel_attach: bool,

    /// RAM role whose credentials the instance metadata service returns.
    #[arg(long, default_value = "diskplugin-node")]
    pub ram_role: String,

    /// Reject requests without a token in the instance metadata service.
    #[arg(long)]
    pub metadata_token_required: bool,

    /// What backs an attached disk.
    #[arg(long, value_enum, default_value_t = Backing::None)]
    pub back_with: Backing,

    /// Directory for the files of disks and the links to devices, with --back-with loop.
    #[arg(long, required_if_eq("back_with", "loop"))]
    pub device_dir: Option<PathBuf>,

    /// Additional configuration in JSON, in the format of the control API.
    #[arg(long, value_parser = json)]
    pub config: Option<serde_json::Value>,
}

/// What backs an attached disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Backing {
    /// No device: disks exist in the API only.
    None,
    /// A loop device for each attached disk. Requires root.
    Loop,
}

/// The instances of a fake cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes(pub Vec<NodeSpec>);

impl FromStr for Nodes {
    type Err = super::invalid_text::InvalidText;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(count) = text.trim().parse() {
            return Ok(Self(vec![NodeSpec::default(); count]));
        }
        let specs = text.split(',').map(str::parse);
        specs.collect::<Result<_, _>>().map(Self)
    }
}

impl Options {
    /// The configured zones, or the default zones of the region.
    #[must_use]
    pub fn zones(&self) -> Vec<String> {
        if self.zones.is_empty() {
            return ["a", "b", "c"].map(|zone| format!("{}-{zone}", self.region)).to_vec();
        }
        self.zones.clone()
    }
}

fn zone(text: &str) -> Result<String, String> {
    let rule = "letters, digits, '-', '_' and '.', at most 64 characters";
    let invalid = || format!("{text:?} is not a valid zone ID; expected: {rule}");
    is_zone(text).then(|| text.to_owned()).ok_or_else(invalid)
}

fn json(text: &str) -> Result<serde_json::Value, String> {
    let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let config = Config::default().patched(&value);
    config.map(|_| value).map_err(|error| error_text(&error))
}

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
    /// Parses command-line flags, without a program name.
    ///
    /// # Errors
    /// If a flag is unknown or its value is invalid.
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

    pub(crate) fn initial_state(&self) -> InitialState {
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
            out_of_stock: self.out_of_stock.clone(),
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
        config.rules.serial_attach_detach = !self.parallel_attach;
        if let Some(patch) = &self.config {
            config = config
                .patched(patch)
                .expect("validated when the command line was parsed");
        }
        InitialState {
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
    use crate::call_quota::Quota;

    #[test]
    fn flags_become_configuration() {
        let options = Options::from_flags([
            "--attach-delay=1s..5s",
            "--throttle=60,user=600",
            "--latency=lognormal:60ms,0.6",
            "--latency=AttachDisk=0.3s",
            "--out-of-stock=*/cloud_ssd,cn-beijing-a/*",
            "--nodes=3",
            "--parallel-attach",
            r#"--config={"rules":{"never_attached":true}}"#,
        ]);
        let initial_state = options.unwrap().initial_state();
        assert_eq!(initial_state.config.delays.attach.to_string(), "1s..5s");
        let latency = &initial_state.config.latency;
        assert_eq!(latency.all.to_string(), "lognormal:60ms,0.6");
        assert_eq!(latency.actions["AttachDisk"].to_string(), "300ms");
        assert_eq!(initial_state.config.throttle.user, Some(Quota::a_minute(600)));
        assert_eq!(initial_state.config.out_of_stock.len(), 2);
        assert_eq!(initial_state.nodes.len(), 3);
        assert!(!initial_state.config.rules.serial_attach_detach);
        assert!(initial_state.config.rules.never_attached);
    }

    #[test]
    fn loop_backing_needs_a_directory() {
        assert!(Options::from_flags(["--back-with=loop"]).is_err());
        assert!(Options::from_flags(["--back-with=loop", "--device-dir=/tmp/x"]).is_ok());
    }

    #[test]
    fn key_and_secret_are_not_printed() {
        let flags = ["--access-key-id=hush-key", "--access-key-secret=hush-hush"];
        let options = Options::from_flags(flags).unwrap();
        assert!(!format!("{options:?}").contains("hush"));
    }

    #[test]
    fn a_list_of_nodes_contains_their_ids() {
        let options = Options::from_flags(["--nodes=i-1=cn-beijing-c,i-2"]).unwrap();
        let ids: Vec<_> = options.nodes.0.iter().map(|n| n.id.as_deref()).collect();
        assert_eq!(ids, [Some("i-1"), Some("i-2")]);
    }
}
