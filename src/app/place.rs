//! Region, zone and node id: as given, else as the instance metadata service tells.

use crate::base::chain::chain;
use crate::cli::Place;
use crate::cloud::metadata::{Item, Metadata};
use crate::model::{InstanceId, RegionId, ZoneId};

/// Asks the metadata service for what was not given.
#[derive(Debug)]
pub(crate) struct Whereabouts {
    metadata: Metadata,
    problems: Vec<String>,
}

impl Whereabouts {
    pub(crate) fn new(place: &Place) -> anyhow::Result<Self> {
        Ok(Self {
            metadata: place.metadata()?,
            problems: Vec::new(),
        })
    }

    /// The setting, or what the metadata service has for it; none is a problem, to be reported with
    /// all others.
    async fn item<T: std::str::FromStr<Err = crate::model::InvalidId>>(
        &mut self,
        flag: &str,
        given: Option<T>,
        item: Item,
    ) -> Option<T> {
        if given.is_some() {
            return given;
        }
        let told = match self.metadata.get(item).await {
            Ok(text) => text
                .parse()
                .map_err(|error: crate::model::InvalidId| error.to_string()),
            Err(error) => Err(chain(&error)),
        };
        match told {
            Ok(id) => Some(id),
            Err(problem) => {
                self.problems
                    .push(format!("{flag} is not set, and {problem}"));
                None
            }
        }
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

    /// The zone, where it is only a default: not having one is said and no problem.
    pub(crate) async fn default_zone(&mut self, given: Option<ZoneId>) -> Option<ZoneId> {
        let before = self.problems.len();
        let zone = self.zone(given).await;
        for problem in self.problems.drain(before..) {
            tracing::info!("volumes without topology need zoneId in their StorageClass: {problem}");
        }
        zone
    }

    /// The setting; one that is wrong is a problem, to be reported with all others.
    pub(crate) fn checked<T>(&mut self, setting: Result<T, super::WrongSettings>) -> Option<T> {
        setting.map_err(|wrong| self.problems.extend(wrong.0)).ok()
    }

    /// Notes another problem.
    pub(crate) fn problem(&mut self, text: impl Into<String>) {
        self.problems.push(text.into());
    }

    /// All problems so far, as the one error.
    pub(crate) fn check(self) -> super::WrongSettings {
        super::WrongSettings(self.problems)
    }
}
