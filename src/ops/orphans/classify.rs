//! Decides what is an orphan. Pure: everything that was read is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::finding::{Class, Finding, Kind, Report};
use super::observe::{Current, Observed, Presence};
use crate::cluster::volumes::{Attachment, Content, ContentKind, Resource, Volume, Volumes};
use crate::model::{ClusterId, Disk, InstanceId, Snapshot, Tags, tag};
use crate::ops::value_name;

/// How the observed resources are judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    pub cluster: ClusterId,
    /// Younger resources may not have their object in Kubernetes yet.
    pub min_age: Duration,
    /// Accept that no object in Kubernetes refers to any resource of this cluster.
    pub allow_unreferenced: bool,
}

/// The report on what was observed.
///
/// # Errors
/// If the observations do not belong to the same cluster.
pub fn classify(observed: &Observed, rules: &Rules) -> anyhow::Result<Report> {
    let view = View::new(observed, rules);
    view.check_related()?;
    let mut report = Report {
        cluster_id: rules.cluster.to_string(),
        listed_at: observed.at,
        findings: Vec::new(),
        younger: 0,
        notes: Vec::new(),
        deletions: None,
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
        .sort_by(|a, b| (a.class, a.kind, a.created_at, &a.id).cmp(&(b.class, b.kind, b.created_at, &b.id)));
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

    /// Something must show that the API server is that of the cluster ID.
    fn check_related(&self) -> anyhow::Result<()> {
        let Observed { disks, snapshots, .. } = self.observed;
        let (count, cluster) = (disks.len() + snapshots.len(), &self.rules.cluster);
        let mut resources = disks.iter().map(of_disk).chain(snapshots.iter().map(of_snapshot));
        let is_related = resources.any(|resource| self.is_referenced(&resource));
        anyhow::ensure!(
            count == 0 || self.rules.allow_unreferenced || is_related,
            "the cloud has {count} disks and snapshots of cluster ID {cluster}, and no object in Kubernetes refers to any \
             of them: the kubeconfig is of another cluster, or --cluster-id is wrong. If all volumes of this cluster were \
             removed, set --allow-unreferenced"
        );
        Ok(())
    }

    /// Reports a resource without a reference, if it is certainly old enough.
    fn judge_unreferenced(&self, finding: Finding, report: &mut Report) {
        let age = finding.created_at.map(|created| age(self.observed.at, created));
        match age.is_some_and(|age| age >= self.rules.min_age) {
            true => report.findings.push(finding),
            false => report.younger += 1,
        }
    }

    fn judge_disk(&self, disk: &Disk, report: &mut Report) {
        if !self.is_referenced(&of_disk(disk)) {
            return self.judge_unreferenced(self.of_disk(disk, Class::Leaked, None), report);
        }
        let volumes = self.volumes.get(disk.id.as_str());
        let volumes = volumes.map(Vec::as_slice).unwrap_or_default();
        let is_released =
            |volume: &&Volume| volume.is_retained && matches!(volume.phase.as_str(), "Released" | "Failed");
        // A volume that was bound again can have another PersistentVolume.
        if let [volume, ..] = volumes
            && volumes.iter().all(is_released)
        {
            report.findings.push(self.of_disk(disk, Class::Released, Some(volume)));
        }
        if is_deleted_with_instance(disk) {
            let finding = self.of_disk(disk, Class::DeletedWithInstance, volumes.first().copied());
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
            let mut finding = self.of_disk(disk, Class::AttachedWithoutVa, volume.copied());
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
        if self.is_referenced(&of_snapshot(snapshot)) {
            return;
        }
        match self.of_snapshot(snapshot) {
            kept if kept.class == Class::BeforeDeletion => report.findings.push(kept),
            _ if self.is_of_clone(snapshot) => {}
            unused => self.judge_unreferenced(unused, report),
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
            let is_same = |one: &Volume| one.name == volume.name && one.handle == volume.handle;
            if before.iter().any(is_same) {
                let finding = self.unowned(Kind::Disk, &volume.handle, &volume.name, volume.claim.as_ref());
                report.findings.extend(finding);
                if let Some(Presence::Found(Current {
                    row: Some(disk),
                    is_owned: false,
                    ..
                })) = self.observed.others.get(&volume.handle)
                    && is_deleted_with_instance(disk)
                {
                    let finding = self.of_disk(disk, Class::DeletedWithInstance, Some(volume));
                    report.findings.push(finding);
                }
            }
        }
    }

    fn judge_contents(&self, report: &mut Report) {
        let before = &self.observed.before.contents;
        let is_stable = |content: &&Content| before.contains(content);
        for content in self.observed.after.contents.iter().filter(is_stable) {
            if let (ContentKind::Snapshot, Some(handle)) = (content.kind, &content.handle) {
                let finding = self.unowned(Kind::Snapshot, handle, &content.name, content.snapshot.as_ref());
                report.findings.extend(finding);
            }
        }
    }

    /// The finding of an object whose handle is not in the lists of the cloud.
    fn unowned(&self, kind: Kind, handle: &str, object: &str, claim: Option<&String>) -> Option<Finding> {
        let presence = self.observed.others.get(handle)?;
        let (finding, detail) = match presence {
            Presence::Found(current) if current.is_owned => return None,
            Presence::Found(current) => {
                let finding = match &current.row {
                    Some(disk) => self.of_disk(disk, Class::Foreign, None),
                    None => Finding::new(Class::Foreign, kind, handle),
                };
                let owner = current
                    .tags
                    .get(tag::CLUSTER)
                    .map(|owner| format!("cluster ID {owner}"));
                (finding, owner.or_else(|| Some("no cluster tag".to_owned())))
            }
            Presence::Absent => (Finding::new(Class::Missing, kind, handle), None),
            Presence::Invalid => {
                let detail = format!("not the ID of a {}", value_name(&kind));
                (Finding::new(Class::Missing, kind, handle), Some(detail))
            }
        };
        Some(Finding {
            object: Some(object.to_owned()),
            claim: claim.cloned(),
            detail,
            ..finding
        })
    }

    fn of_disk(&self, disk: &Disk, class: Class, volume: Option<&Volume>) -> Finding {
        let (name, claim) = created_for(&disk.tags);
        Finding {
            object: volume.map(|volume| volume.name.clone()).or(name),
            claim: volume.and_then(|volume| volume.claim.clone()).or(claim),
            created_at: disk.created,
            age_seconds: disk.created.map(|created| age(self.observed.at, created).as_secs()),
            size: Some(disk.size),
            category: Some(disk.category.to_string()),
            performance_level: disk.performance_level.clone(),
            zone: disk.zone.clone(),
            instances: disk.attachments.clone(),
            ..Finding::new(class, Kind::Disk, disk.id.as_str())
        }
    }

    fn of_snapshot(&self, snapshot: &Snapshot) -> Finding {
        let group = tag::group_of(snapshot).map(|group| format!("part of snapshot group {group}"));
        let clone = snapshot.tags.get(tag::CLONE_FOR);
        let clone = clone.map(|name| format!("temporary snapshot for the clone {name}"));
        let (volume, claim) = created_for(&snapshot.tags);
        let days = snapshot.tags.get(tag::DELETION_SNAPSHOT_DAYS);
        let kept = days.zip(snapshot.source_disk.as_ref());
        let kept = kept.map(|(days, disk)| format!("of {disk}, kept for {days} days"));
        let is_last_copy = snapshot.tags.contains_key(tag::DELETION_OF);
        let class = if is_last_copy {
            Class::BeforeDeletion
        } else {
            Class::Leaked
        };
        Finding {
            object: snapshot.tags.get(tag::CSI_NAME).cloned().or(volume),
            claim,
            created_at: snapshot.created,
            age_seconds: snapshot.created.map(|created| age(self.observed.at, created).as_secs()),
            size: Some(snapshot.source_size),
            detail: group.or(clone).or(kept),
            ..Finding::new(class, Kind::Snapshot, snapshot.id.as_str())
        }
    }
}

/// The names of volume and claim in the tags.
fn created_for(tags: &Tags) -> (Option<String>, Option<String>) {
    let of = |name| tags.get(&format!("{}{name}", tag::CREATED_FOR));
    let claim = of("pvc/namespace").zip(of("pvc/name"));
    let claim = claim.map(|(namespace, name)| format!("{namespace}/{name}"));
    (of("pv/name").cloned(), claim)
}

fn of_disk(disk: &Disk) -> Resource<'_> {
    Resource::new(disk.id.as_str(), &disk.tags, None)
}

fn of_snapshot(snapshot: &Snapshot) -> Resource<'_> {
    Resource::new(snapshot.id.as_str(), &snapshot.tags, snapshot.group.as_ref())
}

fn is_deleted_with_instance(disk: &Disk) -> bool {
    !disk.attachments.is_empty() && disk.is_lost_with_instance()
}

/// The age; zero for a time in the future.
pub(super) fn age(now: Timestamp, created: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(created)).unwrap_or_default()
}
