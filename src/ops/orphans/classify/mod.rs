//! Decides what is an orphan. Pure: everything that was read is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::finding::{Class, Finding, Kind, Report};
use super::observe::{Observed, Presence};
use crate::cluster::volumes::{Attachment, Content, ContentKind, Resource, Volume, Volumes};
use crate::model::{ClusterId, Disk, InstanceId, Snapshot, Tags, tag};

/// How the observed resources are judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    pub cluster: ClusterId,
    /// Younger resources may not have their object in Kubernetes yet.
    pub min_age: Duration,
    /// Accept that no object in Kubernetes refers to any resource of this cluster.
    pub allow_unreferenced: bool,
}

/// Nothing shows that the API server is that of the cluster ID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cloud has {count} disks and snapshots of cluster ID {cluster}, and no object in Kubernetes refers to any of them: \
     the kubeconfig is of another cluster, or --cluster-id is wrong. If all volumes of this cluster were removed, set \
     --allow-unreferenced"
)]
pub struct UnrelatedCluster {
    count: usize,
    cluster: ClusterId,
}

/// The report on what was observed.
///
/// # Errors
/// If the observations do not belong to the same cluster.
pub fn classify(observed: &Observed, rules: &Rules) -> Result<Report, UnrelatedCluster> {
    let view = View::new(observed, rules);
    view.check_related()?;
    let mut report = Report {
        cluster: rules.cluster.clone(),
        at: observed.at,
        findings: Vec::new(),
        young: 0,
        notes: Vec::new(),
    };
    if observed.snapshots.is_empty() && !observed.any_snapshot_visible {
        report.notes.push(
            "the cloud lists no snapshots of any owner: none exist, or the access key lacks ecs:DescribeSnapshots; leaked \
             snapshots cannot be excluded"
                .to_owned(),
        );
    }
    for disk in &observed.disks {
        view.judge_disk(disk, &mut report);
    }
    for snapshot in &observed.snapshots {
        view.judge_snapshot(snapshot, &mut report);
    }
    view.judge_volumes(&mut report);
    view.judge_contents(&mut report);
    report
        .findings
        .sort_by(|a, b| (a.class, a.kind, a.created, &a.id).cmp(&(b.class, b.kind, b.created, &b.id)));
    Ok(report)
}

/// What was observed, indexed by what resources are compared with.
struct View<'a> {
    observed: &'a Observed,
    rules: &'a Rules,
    /// The IDs that objects refer to, in any reading.
    ids: BTreeSet<&'a str>,
    /// The PersistentVolumes by handle, of the last reading.
    volumes: BTreeMap<&'a str, Vec<&'a Volume>>,
    /// The names of the PersistentVolumes by handle, of both readings.
    names: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// The VolumeAttachments by the name of the PersistentVolume, of both readings.
    attachments: BTreeMap<Option<&'a str>, Vec<&'a Attachment>>,
}

impl<'a> View<'a> {
    fn new(observed: &'a Observed, rules: &'a Rules) -> Self {
        let mut view = Self {
            observed,
            rules,
            ids: BTreeSet::new(),
            volumes: BTreeMap::new(),
            names: BTreeMap::new(),
            attachments: BTreeMap::new(),
        };
        for reading in view.readings() {
            view.ids.extend(reading.ids());
            for volume in &reading.volumes {
                let names = view.names.entry(&volume.handle).or_default();
                names.insert(&volume.name);
            }
            for attachment in &reading.attachments {
                let of_volume = view.attachments.entry(attachment.volume.as_deref());
                of_volume.or_default().push(attachment);
            }
        }
        for volume in &observed.after.volumes {
            let of_handle = view.volumes.entry(&volume.handle);
            of_handle.or_default().push(volume);
        }
        view
    }

    fn readings(&self) -> [&'a Volumes; 2] {
        [&self.observed.before, &self.observed.after]
    }

    /// An object that existed before or after the listing of the cloud refers to the resource.
    fn is_referenced(&self, resource: &Resource<'_>) -> bool {
        let mut ids = std::iter::once(resource.id).chain(resource.group);
        let mut readings = self.readings().into_iter();
        ids.any(|id| self.ids.contains(id)) || readings.any(|volumes| volumes.waits_for(resource.tags))
    }

    fn check_related(&self) -> Result<(), UnrelatedCluster> {
        let disks = self.observed.disks.iter().map(resource_of_disk);
        let snapshots = self.observed.snapshots.iter().map(resource_of_snapshot);
        let mut owned = disks.chain(snapshots).peekable();
        let is_empty = owned.peek().is_none();
        if is_empty || self.rules.allow_unreferenced || owned.any(|resource| self.is_referenced(&resource)) {
            return Ok(());
        }
        Err(UnrelatedCluster {
            count: self.observed.disks.len() + self.observed.snapshots.len(),
            cluster: self.rules.cluster.clone(),
        })
    }

    /// Whether it is certainly at least this old.
    fn is_old(&self, created: Option<Timestamp>) -> bool {
        created.is_some_and(|created| age(self.observed.at, created) >= self.rules.min_age)
    }

    fn judge_disk(&self, disk: &Disk, report: &mut Report) {
        if !self.is_referenced(&resource_of_disk(disk)) {
            match self.is_old(disk.created) {
                true => report.findings.push(of_disk(disk, Class::Leaked, None)),
                false => report.young += 1,
            }
            return;
        }
        let volumes = self.volumes.get(disk.id.as_str());
        let volumes = volumes.map(Vec::as_slice).unwrap_or_default();
        let is_released =
            |volume: &&Volume| volume.is_retained && matches!(volume.phase.as_str(), "Released" | "Failed");
        // A volume that was bound again can have another PersistentVolume.
        if let [volume, ..] = volumes
            && volumes.iter().all(is_released)
        {
            let finding = of_disk(disk, Class::Released, Some(volume));
            report.findings.push(finding);
        }
        if is_deleted_with_instance(disk) {
            let finding = of_disk(disk, Class::DeletedWithInstance, volumes.first().copied());
            report.findings.push(finding);
        }
        let unexplained: Vec<_> = disk
            .attachments
            .iter()
            .filter(|instance| !self.has_attachment(disk, instance))
            .cloned()
            .collect();
        if !unexplained.is_empty() {
            let bound = volumes.iter().find(|volume| volume.phase == "Bound");
            let volume = bound.or(volumes.first());
            let mut finding = of_disk(disk, Class::AttachedWithoutVa, volume.copied());
            finding.instances = unexplained;
            report.findings.push(finding);
        }
    }

    /// Whether a VolumeAttachment explains why the instance holds the disk. A node whose instance is unknown may be
    /// this instance.
    fn has_attachment(&self, disk: &Disk, instance: &InstanceId) -> bool {
        let instance_of = |node: &str| {
            let mut readings = self.readings().into_iter();
            readings.find_map(|volumes| volumes.instances.get(node))
        };
        let names = self.names.get(disk.id.as_str()).into_iter().flatten();
        // Those without a name are of inline volumes, which can be of this disk.
        let names = names.map(|name| Some(*name)).chain([None]);
        let mut attachments = names.filter_map(|name| self.attachments.get(&name)).flatten();
        attachments.any(|attachment| instance_of(&attachment.node).is_none_or(|known| known == instance))
    }

    fn judge_snapshot(&self, snapshot: &Snapshot, report: &mut Report) {
        if self.is_referenced(&resource_of_snapshot(snapshot)) || self.is_of_clone(snapshot) {
            return;
        }
        match self.is_old(snapshot.created) {
            true => report.findings.push(of_snapshot(snapshot)),
            false => report.young += 1,
        }
    }

    /// Whether it is the temporary snapshot of a clone that exists: the driver deletes it with that disk.
    fn is_of_clone(&self, snapshot: &Snapshot) -> bool {
        let Some(name) = snapshot.tags.get(tag::CLONE_FOR) else {
            return false;
        };
        let mut disks = self.observed.disks.iter();
        disks.any(|disk| disk.tags.get(tag::CSI_NAME) == Some(name))
    }

    /// PersistentVolumes whose disk is not one of this cluster.
    fn judge_volumes(&self, report: &mut Report) {
        let before = &self.observed.before.volumes;
        for volume in &self.observed.after.volumes {
            // A volume that was created or changed meanwhile was not compared with the cloud.
            let is_stable = before
                .iter()
                .any(|one| one.name == volume.name && one.handle == volume.handle);
            if is_stable && let Some(presence) = self.observed.others.get(&volume.handle) {
                let finding = unowned(
                    Kind::Disk,
                    &volume.handle,
                    presence,
                    &volume.name,
                    volume.claim.as_ref(),
                );
                report.findings.extend(finding);
                if let Presence::Foreign { row: Some(disk), .. } = presence
                    && is_deleted_with_instance(disk)
                {
                    let finding = of_disk(disk, Class::DeletedWithInstance, Some(volume));
                    report.findings.push(finding);
                }
            }
        }
    }

    fn judge_contents(&self, report: &mut Report) {
        let before = &self.observed.before.contents;
        let is_stable = |content: &&Content| before.contains(content);
        for content in self.observed.after.contents.iter().filter(is_stable) {
            if content.kind == ContentKind::Snapshot
                && let Some(handle) = &content.handle
                && let Some(presence) = self.observed.others.get(handle)
            {
                let finding = unowned(
                    Kind::Snapshot,
                    handle,
                    presence,
                    &content.name,
                    content.snapshot.as_ref(),
                );
                report.findings.extend(finding);
            }
        }
    }
}

fn resource_of_disk(disk: &Disk) -> Resource<'_> {
    Resource {
        id: disk.id.as_str(),
        tags: &disk.tags,
        group: None,
    }
}

fn resource_of_snapshot(snapshot: &Snapshot) -> Resource<'_> {
    Resource {
        id: snapshot.id.as_str(),
        tags: &snapshot.tags,
        group: tag::group_id(&snapshot.tags, snapshot.group.as_ref()),
    }
}

fn is_deleted_with_instance(disk: &Disk) -> bool {
    !disk.attachments.is_empty() && disk.is_lost_with_instance()
}

/// The age; zero for a time in the future.
pub(super) fn age(now: Timestamp, created: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(created)).unwrap_or_default()
}

fn of_disk(disk: &Disk, class: Class, volume: Option<&Volume>) -> Finding {
    let (object, claim) = created_for(&disk.tags);
    Finding {
        class,
        kind: Kind::Disk,
        id: disk.id.to_string(),
        object: volume.map(|volume| volume.name.clone()).or(object),
        claim: volume.and_then(|volume| volume.claim.clone()).or(claim),
        created: disk.created,
        size: Some(disk.size),
        category: Some(disk.category.clone()),
        performance_level: disk.performance_level.clone(),
        zone: disk.zone.as_ref().map(ToString::to_string),
        instances: disk.attachments.clone(),
        detail: None,
    }
}

fn of_snapshot(snapshot: &Snapshot) -> Finding {
    let group = tag::group_of(snapshot);
    let clone = snapshot.tags.get(tag::CLONE_FOR);
    let detail = match (group, clone) {
        (Some(group), _) => Some(format!("part of snapshot group {group}")),
        (None, Some(name)) => Some(format!("temporary snapshot for the clone {name}")),
        (None, None) => None,
    };
    Finding {
        class: Class::Leaked,
        kind: Kind::Snapshot,
        id: snapshot.id.to_string(),
        object: snapshot.tags.get(tag::CSI_NAME).cloned(),
        claim: None,
        created: snapshot.created,
        size: Some(snapshot.source_size),
        category: None,
        performance_level: None,
        zone: None,
        instances: Vec::new(),
        detail,
    }
}

fn unowned(kind: Kind, handle: &str, presence: &Presence, object: &str, claim: Option<&String>) -> Option<Finding> {
    let missing = Finding {
        class: Class::Missing,
        kind,
        id: handle.to_owned(),
        object: Some(object.to_owned()),
        claim: claim.cloned(),
        created: None,
        size: None,
        category: None,
        performance_level: None,
        zone: None,
        instances: Vec::new(),
        detail: None,
    };
    Some(match presence {
        Presence::Owned => return None,
        Presence::Invalid => Finding {
            detail: Some(format!("not the ID of a {kind}")),
            ..missing
        },
        Presence::Absent => missing,
        Presence::Foreign { row, owner } => Finding {
            class: Class::Foreign,
            object: Some(object.to_owned()),
            claim: claim.cloned(),
            detail: Some(match owner {
                Some(owner) => format!("cluster ID {owner}"),
                None => "no cluster tag".to_owned(),
            }),
            ..match row {
                Some(disk) => of_disk(disk, Class::Foreign, None),
                None => missing,
            }
        },
    })
}

/// PersistentVolume and claim for which a disk was created, from its tags.
fn created_for(tags: &Tags) -> (Option<String>, Option<String>) {
    let value = |name| tags.get(&format!("{}{name}", tag::CREATED_FOR));
    let claim = value("pvc/namespace").zip(value("pvc/name"));
    let claim = claim.map(|(namespace, name)| format!("{namespace}/{name}"));
    (value("pv/name").cloned(), claim)
}

#[cfg(test)]
mod tests;
