//! A VolumeSnapshotClass or VolumeGroupSnapshotClass.

use super::manifest::SnapshotClass as Object;
use super::parameters;
use super::report::Explained;
use super::sidecar::{self, Sidecar};
use super::{Owner, Settings};
use crate::csi::param::snapshot::SnapshotClass;

pub(super) fn explain(class: &Object, group: bool, settings: &Settings, mut to: Explained) -> Explained {
    let owner = settings.owner(&class.driver);
    if owner == Owner::Other {
        return to.skip(settings.other_driver("driver", &class.driver));
    }
    let sidecar = match group {
        true => Sidecar::GroupSnapshotter,
        false => Sidecar::Snapshotter,
    };
    sidecar::check(sidecar, class.parameters.as_ref(), &mut to);
    let mut map = parameters::strings(class.parameters.as_ref(), &mut to);
    let read = match group {
        true => SnapshotClass::read_of_group,
        false => SnapshotClass::read,
    };
    if let Some(parsed) = parameters::parse_all(&mut map, &mut to, read) {
        match parsed.retention_days {
            Some(days) => to.set_with(
                "retentionDays",
                days.to_string(),
                "then the cloud deletes the snapshot, even if it is in use",
            ),
            None if !to.problems.is_empty() => {}
            None => to.set_with("retention", "unlimited", "until the snapshot is deleted"),
        }
        if let Some(group) = parsed.resource_group {
            to.set_with("resourceGroupId", group, "the resource group for billing");
        }
        let target = match group {
            true => "on the group and each of its snapshots",
            false => "on the snapshot",
        };
        for (key, value) in parsed.tags {
            to.set_with("tag", format!("{key}={value}"), target);
        }
    }
    let kind = if group { "snapshot group" } else { "snapshot" };
    match class.deletion_policy.as_deref() {
        Some("Delete") => {
            let effect = format!("the {kind} is deleted with its object in Kubernetes");
            to.set_with("deletionPolicy", "Delete", effect);
        }
        Some("Retain") => {
            let effect = format!("the {kind} remains when its object in Kubernetes is deleted");
            to.set_with("deletionPolicy", "Retain", effect);
        }
        Some(other) => {
            let text = format!("deletionPolicy has value {other:?}; allowed: Delete, Retain");
            to.reject("deletionPolicy", &text);
        }
        None => to.reject("deletionPolicy", "deletionPolicy is required: Delete or Retain"),
    }
    if owner == Owner::Vendor {
        settings.note_vendor("driver", &mut to);
    }
    to
}
