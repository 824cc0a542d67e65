//! Deletes named orphans, each after another reading of cloud and Kubernetes.

use std::time::Duration;

use humantime::format_duration;
use jiff::Timestamp;

use super::classify::age;
use super::finding::{Class, Deletion, DeletionResult, Report, ResourceId};
use super::observe::{Current, ObserveError, Observer};
use crate::base::Deadline;
use crate::cluster::volumes::{Resource, Volumes};
use crate::model::{InstanceId, tag};
use crate::ops::value_name;

/// Limit of reading one resource.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Limit of deleting it. Short, because Kubernetes was read before: a deletion that the cloud rejects at first must not
/// succeed later.
const DELETE_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason not to delete the resource, if there is one.
pub(super) fn refusal(
    id: &ResourceId,
    current: &Current,
    volumes: &Volumes,
    report: &Report,
    older_than: Duration,
    now: Timestamp,
) -> Option<String> {
    if !current.is_owned {
        return Some(match current.tags.get(tag::CLUSTER) {
            Some(owner) => format!("it belongs to cluster ID {owner}"),
            None => "it has no cluster tag".to_owned(),
        });
    }
    let resource = Resource::new(id.as_str(), &current.tags, current.group.as_ref());
    if volumes.uses(&resource) {
        return Some("an object in Kubernetes refers to it".to_owned());
    }
    let holders = current.row.iter().flat_map(|disk| &disk.attachments);
    let holders: Vec<_> = holders.map(InstanceId::as_str).collect();
    if !holders.is_empty() {
        return Some(format!("it is attached to {}", holders.join(" and ")));
    }
    let age = current.created.map(|created| age(now, created));
    if age.is_none_or(|age| age < older_than) {
        let age = age.map(|age| format_duration(Duration::from_secs(age.as_secs())));
        let age = age.map_or_else(|| "its age is unknown".to_owned(), |age| format!("it is {age} old"));
        return Some(format!("{age}, and --older-than is {}", format_duration(older_than)));
    }
    let findings = report.findings.iter().filter(|finding| finding.id == id.as_str());
    let classes: Vec<_> = findings.map(|finding| finding.class).collect();
    match classes.as_slice() {
        [Class::Leaked] => None,
        [class, ..] => Some(format!(
            "it is reported as {}, and only leaked resources are deleted",
            value_name(class)
        )),
        [] => Some(
            "the report does not have it: it is younger than --min-age, or was not listed yet; run again later"
                .to_owned(),
        ),
    }
}

impl Observer {
    /// Deletes the resource if it is still leaked and older than this.
    pub async fn delete(&self, id: &ResourceId, report: &Report, older_than: Duration) -> Deletion {
        let (result, reason) = match self.try_delete(id, report, older_than).await {
            Ok(None) => (DeletionResult::Deleted, None),
            Ok(Some(refusal)) => (DeletionResult::Refused, Some(refusal)),
            Err(error) => (DeletionResult::Failed, Some(error.for_user())),
        };
        let id = id.as_str().to_owned();
        Deletion { id, result, reason }
    }

    async fn try_delete(
        &self,
        id: &ResourceId,
        report: &Report,
        older_than: Duration,
    ) -> Result<Option<String>, ObserveError> {
        let deadline = Deadline::after(TIMEOUT);
        let Some(current) = self.current(deadline, id).await? else {
            return Ok(Some("it does not exist".to_owned()));
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
}
