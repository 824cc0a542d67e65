//! Region, zone and node ID: from flags, or else from the instance metadata service.

use std::path::PathBuf;
use std::time::Duration;

use ecs::metadata::{Item, Metadata, MetadataError};

use super::invalid_settings::InvalidSettings;
use crate::base::Deadline;
use crate::base::error_chain;
use crate::cli::LocationArgs;
use crate::model::{InstanceId, RegionId, ZoneId};
use crate::node::InstanceTypeSource;

/// How long startup waits for an unresponsive metadata service.
const METADATA_TIMEOUT: Duration = Duration::from_secs(6);

/// Resolves the location of this process, and collects the problems of its settings.
#[derive(Debug)]
pub(crate) struct Location<'a> {
    args: &'a LocationArgs,
    /// Created on first use: with all flags set, no HTTP client is needed.
    metadata: Option<Metadata>,
    /// Deadline of all requests together, with their retries.
    deadline: Deadline,
    problems: Vec<String>,
}

impl<'a> Location<'a> {
    pub(crate) fn new(args: &'a LocationArgs) -> Self {
        Self {
            args,
            metadata: None,
            deadline: Deadline::after(METADATA_TIMEOUT),
            problems: Vec::new(),
        }
    }

    /// As [`Self::new`], with a single attempt of each request.
    pub(crate) fn without_retries(args: &'a LocationArgs) -> Self {
        Self {
            deadline: Deadline::after(Duration::ZERO),
            ..Self::new(args)
        }
    }

    fn metadata(&mut self) -> Result<&Metadata, MetadataError> {
        if self.metadata.is_none() {
            self.metadata = Some(self.args.metadata()?);
        }
        Ok(self.metadata.as_ref().expect("created above"))
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
        let deadline = self.deadline;
        self.metadata()?.get(item, deadline).await
    }

    pub(crate) async fn region(&mut self, given: Option<RegionId>) -> Option<RegionId> {
        self.item("--region", given, Item::RegionId).await
    }

    pub(crate) async fn zone(&mut self, given: Option<ZoneId>) -> Option<ZoneId> {
        self.item("--zone", given, Item::ZoneId).await
    }

    pub(crate) async fn node(&mut self, given: Option<InstanceId>) -> Option<InstanceId> {
        self.item("--node-id", given, Item::InstanceId).await
    }

    /// The source of the node's attachment limits. The own instance type is requested only if a file is set; without
    /// it, the node starts with a warning.
    pub(crate) async fn instance_type_source(
        &mut self,
        instance_type: Option<String>,
        file: Option<PathBuf>,
    ) -> InstanceTypeSource {
        let wanted = instance_type.is_none() && file.is_some();
        let instance_type = match wanted {
            false => instance_type,
            true => match self.fetch(Item::InstanceType).await {
                Ok(name) => Some(name),
                Err(error) => {
                    let error = error_chain(&error);
                    tracing::warn!("unknown instance type: {error}; see --instance-type");
                    None
                }
            },
        };
        InstanceTypeSource { file, instance_type }
    }

    /// The default zone of volumes. Without one, the role starts with a log line, and without waiting.
    pub(crate) async fn default_zone(&mut self, given: Option<ZoneId>) -> Option<ZoneId> {
        self.deadline = Deadline::after(Duration::ZERO);
        let before = self.problems.len();
        let zone = self.zone(given).await;
        for problem in self.problems.drain(before..) {
            tracing::info!("volumes without topology require zoneId in their StorageClass: {problem}");
        }
        zone
    }

    /// The setting; an invalid one is noted as a problem.
    pub(crate) fn checked<T>(&mut self, setting: Result<T, InvalidSettings>) -> Option<T> {
        setting.map_err(|invalid| self.problems.extend(invalid.0)).ok()
    }

    pub(crate) fn problem(&mut self, text: impl Into<String>) {
        self.problems.push(text.into());
    }

    /// All problems in one error.
    pub(crate) fn into_error(self) -> InvalidSettings {
        InvalidSettings(self.problems)
    }
}
