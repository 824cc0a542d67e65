//! Region, zone and node id: as given, else as the instance metadata service tells.

use std::path::PathBuf;
use std::time::Duration;

use crate::base::Deadline;
use crate::base::chain::chain;
use crate::cli::Place;
use crate::cloud::metadata::{Item, Metadata, MetadataError};
use crate::model::{InstanceId, RegionId, ZoneId};
use crate::node::info::Types;

/// How long a start waits for a metadata service that does not answer; then its caller starts it
/// anew.
const PATIENCE: Duration = Duration::from_secs(6);

/// Asks the metadata service for what was not given.
#[derive(Debug)]
pub(crate) struct Whereabouts<'a> {
    place: &'a Place,
    /// Made when it is first asked: who is told everything needs no HTTP client.
    metadata: Option<Metadata>,
    /// Until when all questions together are asked again.
    deadline: Deadline,
    problems: Vec<String>,
}

impl<'a> Whereabouts<'a> {
    pub(crate) fn new(place: &'a Place) -> Self {
        Self {
            place,
            metadata: None,
            deadline: Deadline::after(PATIENCE),
            problems: Vec::new(),
        }
    }

    fn metadata(&mut self) -> Result<&Metadata, MetadataError> {
        if self.metadata.is_none() {
            self.metadata = Some(self.place.metadata()?);
        }
        Ok(self.metadata.as_ref().expect("it was made right above"))
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
        let told = match self.ask(item).await {
            Ok(text) => text
                .parse()
                .map_err(|error: crate::model::InvalidId| error.to_string()),
            Err(error) => Err(chain(&error)),
        };
        match told {
            Ok(id) => Some(id),
            Err(problem) => {
                self.problems.push(format!(
                    "{flag} is not set, and {problem}; set it, or let this process reach the metadata service of its instance"
                ));
                None
            }
        }
    }

    async fn ask(&mut self, item: Item) -> Result<String, MetadataError> {
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

    /// Where the node is told what instance types take. Its own type is asked for only where there is
    /// a use for it, and not knowing it is said and no problem.
    pub(crate) async fn types(&mut self, own: Option<String>, file: Option<PathBuf>) -> Types {
        let wanted = own.is_none() && file.is_some();
        let own = match wanted {
            false => own,
            true => match self.ask(Item::InstanceType).await {
                Ok(name) => Some(name),
                Err(error) => {
                    let error = chain(&error);
                    tracing::warn!("the instance type is not known: {error}; see --instance-type");
                    None
                }
            },
        };
        Types { file, own }
    }

    /// The zone, where it is only a default: not having one is said and no problem, and nothing is
    /// waited for.
    pub(crate) async fn default_zone(&mut self, given: Option<ZoneId>) -> Option<ZoneId> {
        self.deadline = Deadline::after(Duration::ZERO);
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
