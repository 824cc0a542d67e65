//! Deletes named orphans, each after another reading of cloud and Kubernetes.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::classify::age;
use super::finding::{Class, Report, ResourceId};
use super::observe::{ObserveError, Observer};
use crate::base::Deadline;
use crate::cluster::volumes::{Resource, Volumes};
use crate::disk;
use crate::model::{InstanceId, SnapshotGroupId, Tags, tag};

/// Limit of reading one resource.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Limit of deleting it. Short, because Kubernetes was read before: a deletion that the cloud rejects at first must not
/// succeed later.
const DELETE_TIMEOUT: Duration = Duration::from_secs(10);

/// What happened to a named resource.
#[derive(Debug)]
pub struct Deletion {
    pub id: ResourceId,
    pub outcome: Outcome,
}

#[derive(Debug)]
pub enum Outcome {
    Deleted,
    Refused(Refusal),
    /// The error, with its causes.
    Failed(String),
}

/// Why a resource is not deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    DoesNotExist,
    /// The cluster ID in its tags.
    NotOwned(Option<String>),
    Referenced,
    Attached(Vec<InstanceId>),
    TooYoung {
        age: Option<Duration>,
        older_than: Duration,
    },
    /// The class in the report.
    NotLeaked(Class),
    /// It is younger than the report's minimum age, or appeared after the report.
    NotReported,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoesNotExist => f.write_str("it does not exist"),
            Self::NotOwned(Some(owner)) => write!(f, "it belongs to cluster ID {owner}"),
            Self::NotOwned(None) => f.write_str("it has no cluster tag"),
            Self::Referenced => f.write_str("an object in Kubernetes refers to it"),
            Self::Attached(holders) => {
                let holders: Vec<_> = holders.iter().map(InstanceId::as_str).collect();
                write!(f, "it is attached to {}", holders.join(" and "))
            }
            Self::TooYoung { age, older_than } => {
                let older_than = humantime::format_duration(*older_than);
                match age {
                    Some(age) => {
                        let age = humantime::format_duration(Duration::from_secs(age.as_secs()));
                        write!(f, "it is {age} old, and --older-than is {older_than}")
                    }
                    None => write!(f, "its age is unknown, and --older-than is {older_than}"),
                }
            }
            Self::NotLeaked(class) => {
                write!(f, "it is reported as {class}, and only leaked resources are deleted")
            }
            Self::NotReported => f.write_str(
                "the report does not have it: it is younger than --min-age, or was not listed yet; run again later",
            ),
        }
    }
}

impl Serialize for Refusal {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The current state of a named resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Current {
    pub(super) tags: Tags,
    /// The group of a snapshot.
    pub(super) group: Option<SnapshotGroupId>,
    pub(super) created: Option<Timestamp>,
    pub(super) holders: Vec<InstanceId>,
    pub(super) is_owned: bool,
}

/// The reason not to delete the resource, if there is one.
pub(super) fn refusal(
    id: &ResourceId,
    current: &Current,
    volumes: &Volumes,
    report: &Report,
    older_than: Duration,
    now: Timestamp,
) -> Option<Refusal> {
    if !current.is_owned {
        return Some(Refusal::NotOwned(current.tags.get(tag::CLUSTER).cloned()));
    }
    let resource = Resource {
        id: id.as_str(),
        tags: &current.tags,
        group: tag::group_id(&current.tags, current.group.as_ref()),
    };
    if volumes.uses(&resource) {
        return Some(Refusal::Referenced);
    }
    if !current.holders.is_empty() {
        return Some(Refusal::Attached(current.holders.clone()));
    }
    let age = current.created.map(|created| age(now, created));
    if age.is_none_or(|age| age < older_than) {
        return Some(Refusal::TooYoung { age, older_than });
    }
    let classes: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| finding.kind == id.kind() && finding.id == id.as_str())
        .map(|finding| finding.class)
        .collect();
    match classes.as_slice() {
        [Class::Leaked] => None,
        [class, ..] => Some(Refusal::NotLeaked(*class)),
        [] => Some(Refusal::NotReported),
    }
}

impl Observer {
    /// Deletes the resource if it is still leaked and older than this.
    pub async fn delete(&self, id: &ResourceId, report: &Report, older_than: Duration) -> Deletion {
        let outcome = match self.try_delete(id, report, older_than).await {
            Ok(None) => Outcome::Deleted,
            Ok(Some(refusal)) => Outcome::Refused(refusal),
            Err(error) => Outcome::Failed(error.for_user()),
        };
        let id = id.clone();
        Deletion { id, outcome }
    }

    async fn try_delete(
        &self,
        id: &ResourceId,
        report: &Report,
        older_than: Duration,
    ) -> Result<Option<Refusal>, ObserveError> {
        let deadline = Deadline::after(TIMEOUT);
        let Some(current) = self.current(deadline, id).await? else {
            return Ok(Some(Refusal::DoesNotExist));
        };
        let volumes = self.volumes().await?;
        let now = self.clock.now();
        if let Some(refusal) = refusal(id, &current, &volumes, report, older_than, now) {
            return Ok(Some(refusal));
        }
        let deadline = Deadline::after(DELETE_TIMEOUT);
        match id {
            ResourceId::Disk(id) => self.disks.provisioner.delete(deadline, id).await?,
            ResourceId::Snapshot(id) => self.disks.snapshotter.delete(deadline, id).await?,
        }
        Ok(None)
    }

    async fn current(&self, deadline: Deadline, id: &ResourceId) -> disk::Result<Option<Current>> {
        let inventory = &self.disks.inventory;
        let (tags, group, created, holders) = match id {
            ResourceId::Disk(id) => match inventory.find_disk(deadline, id).await? {
                Some(row) => (row.tags, None, row.created, row.attachments),
                None => return Ok(None),
            },
            ResourceId::Snapshot(id) => match inventory.find_snapshot(deadline, id).await? {
                Some(row) => (row.tags, row.group, row.created, Vec::new()),
                None => return Ok(None),
            },
        };
        Ok(Some(Current {
            is_owned: inventory.owns(&tags),
            tags,
            group,
            created,
            holders,
        }))
    }
}

#[cfg(test)]
mod tests;
