//! Region, zone and node ID: from flags, or else from the instance metadata service.

use std::time::Duration;

use clap::Args;
use ecs::metadata::{DEFAULT_ENDPOINT, Item, Metadata, MetadataError};

use super::endpoint::Url;
use super::parse::place;
use super::variable::{is_on, variable};
use crate::base::Deadline;
use crate::base::error_chain;
use crate::model::{InstanceId, RegionId, ZoneId};

/// How long startup waits for an unresponsive metadata service.
const METADATA_TIMEOUT: Duration = Duration::from_secs(6);

#[derive(Debug, Args)]
pub struct LocationArgs {
    /// Region of the disks. Default: from the instance metadata service.
    #[arg(long, env = "DISKPLUGIN_REGION", value_parser = place::<RegionId>)]
    pub region: Option<RegionId>,

    /// Zone of the node; for the controller, the zone of disks for which neither topology nor StorageClass
    /// names a zone. Default: from the instance metadata service.
    #[arg(long, env = "DISKPLUGIN_ZONE", value_parser = place::<ZoneId>)]
    pub zone: Option<ZoneId>,

    /// URL of the instance metadata service.
    #[arg(long, env = "DISKPLUGIN_METADATA_ENDPOINT", default_value = DEFAULT_ENDPOINT,
          value_parser = Url)]
    pub metadata_endpoint: String,

    /// Use only the token mode of the instance metadata service (IMDSv2);
    /// also set by ALIBABA_CLOUD_IMDSV1_DISABLED.
    #[arg(long, env = "DISKPLUGIN_METADATA_TOKEN_ONLY")]
    pub metadata_token_only: bool,
}

impl LocationArgs {
    /// The instance metadata service.
    pub fn metadata(&self) -> Result<Metadata, MetadataError> {
        let token_only = self.metadata_token_only || is_on(variable("ALIBABA_CLOUD_IMDSV1_DISABLED"));
        Metadata::new(&self.metadata_endpoint, !token_only)
    }
}

/// All missing and invalid settings.
#[derive(Debug, thiserror::Error)]
#[error("missing or invalid settings:\n  {}", .0.join("\n  "))]
pub struct InvalidSettings(pub Vec<String>);

impl InvalidSettings {
    pub fn one(problem: impl Into<String>) -> Self {
        Self(vec![problem.into()])
    }
}

/// Resolves the location of this process, and collects the problems of its settings.
#[derive(Debug)]
pub struct Location<'a> {
    args: &'a LocationArgs,
    /// Created on first use: with all flags set, no HTTP client is needed.
    metadata: Option<Metadata>,
    /// Deadline of all requests together, with their retries.
    deadline: Deadline,
    problems: Vec<String>,
}

impl<'a> Location<'a> {
    pub fn new(args: &'a LocationArgs) -> Self {
        Self {
            args,
            metadata: None,
            deadline: Deadline::after(METADATA_TIMEOUT),
            problems: Vec::new(),
        }
    }

    /// As [`Self::new`], with a single attempt of each request.
    pub fn without_retries(args: &'a LocationArgs) -> Self {
        Self {
            deadline: Deadline::after(Duration::ZERO),
            ..Self::new(args)
        }
    }

    /// The flag, or else the value from the metadata service. A missing value is noted as a problem.
    async fn item<T: std::str::FromStr<Err = crate::model::InvalidId>>(
        &mut self,
        flag: &str,
        given: Option<T>,
        item: Item,
    ) -> Option<T> {
        if given.is_some() {
            return given;
        }
        let found = match self.fetch(item).await {
            Ok(text) => text.parse().map_err(|error: crate::model::InvalidId| error.to_string()),
            Err(error) => Err(error_chain(&error)),
        };
        match found {
            Ok(id) => Some(id),
            Err(problem) => {
                self.problems.push(format!(
                    "{flag} is not set, and {problem}; set it, or allow this process to reach the instance metadata service"
                ));
                None
            }
        }
    }

    async fn fetch(&mut self, item: Item) -> Result<String, MetadataError> {
        let metadata = match self.metadata.take() {
            Some(metadata) => metadata,
            None => self.args.metadata()?,
        };
        self.metadata.insert(metadata).get(item, self.deadline).await
    }

    pub async fn region(&mut self) -> Option<RegionId> {
        let given = self.args.region.clone();
        self.item("--region", given, Item::REGION_ID).await
    }

    pub async fn zone(&mut self) -> Option<ZoneId> {
        let given = self.args.zone.clone();
        self.item("--zone", given, Item::ZONE_ID).await
    }

    pub async fn node(&mut self, given: Option<InstanceId>) -> Option<InstanceId> {
        self.item("--node-id", given, Item::INSTANCE_ID).await
    }

    /// The instance type of this machine. Without it, the node starts with a warning.
    pub async fn instance_type(&mut self) -> Option<String> {
        let found = self.fetch(Item::INSTANCE_TYPE).await;
        let unknown = |error| {
            let error = error_chain(&error);
            tracing::warn!("unknown instance type: {error}; see --instance-type");
        };
        found.map_err(unknown).ok()
    }

    /// The default zone of volumes. Without one, the role starts with a log line, and without waiting.
    pub async fn default_zone(&mut self) -> Option<ZoneId> {
        self.deadline = Deadline::after(Duration::ZERO);
        let before = self.problems.len();
        let zone = self.zone().await;
        for problem in self.problems.drain(before..) {
            tracing::info!("volumes without topology require zoneId in their StorageClass: {problem}");
        }
        zone
    }

    /// The setting; an invalid one is noted as a problem.
    pub fn checked<T>(&mut self, setting: Result<T, InvalidSettings>) -> Option<T> {
        setting.map_err(|invalid| self.problems.extend(invalid.0)).ok()
    }

    pub fn problem(&mut self, text: impl Into<String>) {
        self.problems.push(text.into());
    }

    /// All problems in one error.
    pub fn into_error(self) -> InvalidSettings {
        InvalidSettings(self.problems)
    }
}
