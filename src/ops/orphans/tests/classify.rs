//! Classes of single resources, and properties of all reports.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::classify::classify;
use super::super::delete::refusal;
use super::super::finding::{Class, Report, ResourceId};
use super::*;
use crate::cluster::volumes::Attachment;
use crate::model::Category;

fn report(observed: &Observed) -> Report {
    classify(observed, &rules()).unwrap()
}

fn found(observed: &Observed) -> Vec<(Class, String)> {
    let findings = report(observed).findings.into_iter();
    findings.map(|one| (one.class, one.id)).collect()
}

#[test]
fn used_disk_is_not_reported() {
    assert_eq!(found(&observed()), []);
}

#[test]
fn disk_without_reference_is_leaked_with_the_claim_of_its_tags() {
    let mut observed = observed();
    observed.disks.push(disk("d-lost"));
    let report = report(&observed);
    let [finding] = report.findings.as_slice() else {
        panic!("{report:?}");
    };
    assert_eq!((finding.class, finding.id.as_str()), (Class::Leaked, "d-lost"));
    assert_eq!(finding.object.as_deref(), Some("pvc-1"));
    assert_eq!(finding.claim.as_deref(), Some("team/data"));
}

#[test]
fn young_resources_and_those_of_unknown_age_are_only_counted() {
    let mut observed = observed();
    for (id, created) in [("d-new", ago(HOUR / 2)), ("d-unknown", None)] {
        observed.disks.push(Disk { created, ..disk(id) });
    }
    observed.snapshots.push(Snapshot {
        created: None,
        ..snapshot("s-new")
    });
    let report = report(&observed);
    assert_eq!((report.findings.len(), report.younger), (0, 3));
}

#[test]
fn reference_in_either_reading_or_of_another_driver_protects() {
    for change in [
        |observed: &mut Observed| observed.before.volumes.push(volume("pv", "d-lost")),
        |observed: &mut Observed| observed.after.volumes.push(volume("pv", "d-lost")),
        |observed: &mut Observed| observed.after.other_handles.extend(["d-lost".to_owned()]),
    ] {
        let mut observed = observed();
        observed.disks.push(disk("d-lost"));
        change(&mut observed);
        assert_eq!(found(&observed), []);
    }
}

#[test]
fn retained_disk_of_a_released_volume_is_released() {
    for (phase, is_retained, expected) in [
        ("Released", true, true),
        ("Failed", true, true),
        ("Bound", true, false),
        ("Released", false, false),
    ] {
        let mut observed = observed();
        let volume = &mut observed.after.volumes[0];
        (volume.phase, volume.is_retained) = (phase.to_owned(), is_retained);
        let expected = expected.then(|| (Class::Released, "d-used".to_owned()));
        assert_eq!(found(&observed), expected.into_iter().collect::<Vec<_>>(), "{phase}");
    }
}

#[test]
fn disk_of_a_volume_that_was_bound_again_is_not_released() {
    let mut observed = observed();
    for (name, phase) in [("old", "Released"), ("new", "Bound")] {
        let mut again = volume(name, "d-used");
        (again.phase, again.is_retained) = (phase.to_owned(), true);
        observed.after.volumes.push(again);
    }
    observed.after.volumes.remove(0);
    assert_eq!(found(&observed), []);
    observed.disks[0].attachments = vec!["i-1".parse().unwrap()];
    let findings = report(&observed).findings;
    assert_eq!(findings[0].object.as_deref(), Some("new"));
    observed.disks[0].attachments.clear();
    observed.after.volumes[1].phase = "Failed".to_owned();
    let released = [(Class::Released, "d-used".to_owned())];
    assert_eq!(found(&observed), released, "one row for both");
}

#[test]
fn snapshot_of_a_clone_that_a_claim_waits_for_is_not_leaked() {
    let mut observed = observed();
    let mut temporary = snapshot("s-1");
    let name = format!("pvc-{SNAPSHOT_UID}");
    temporary.tags.insert(tag::CLONE_FOR.to_owned(), name);
    observed.snapshots.push(temporary);
    assert_eq!(found(&observed), [(Class::Leaked, "s-1".to_owned())]);
    observed.after.claims.insert(SNAPSHOT_UID.to_owned());
    assert_eq!(found(&observed), []);
}

#[test]
fn snapshot_before_a_deletion_has_a_class_of_its_own_with_its_claim_until_an_object_uses_it() {
    let mut observed = observed();
    let mut kept = snapshot("s-1");
    kept.tags.extend(disk("d-lost").tags);
    for (key, value) in [(tag::DELETION_OF, "d-lost-2026"), (tag::DELETION_SNAPSHOT_DAYS, "7")] {
        kept.tags.insert(key.to_owned(), value.to_owned());
    }
    (kept.source_disk, kept.created) = ("d-lost".parse().ok(), ago(HOUR / 2));
    observed.snapshots.push(kept.clone());
    // The new claim of a volume that is to be restored has the same name.
    observed.after.pending_claims.insert("team/data".to_owned());
    let report = report(&observed);
    let [finding] = report.findings.as_slice() else {
        panic!("{report:?}");
    };
    assert_eq!((finding.class, finding.id.as_str()), (Class::BeforeDeletion, "s-1"));
    assert_eq!(finding.claim.as_deref(), Some("team/data"));
    assert_eq!(finding.object.as_deref(), Some("pvc-1"));
    assert_eq!(finding.detail.as_deref(), Some("of d-lost, kept for 7 days"));
    let current = Current {
        row: None,
        tags: kept.tags,
        ..current(disk("d-lost"), true)
    };
    let refused = refusal(
        &ResourceId::parse("s-1").unwrap(),
        &current,
        &observed.after,
        &report,
        HOUR,
        now(),
    );
    assert!(refused.unwrap().contains("reported as before-deletion"));
    observed.after.contents.push(content("restored", Some("s-1")));
    assert_eq!(found(&observed), []);
}

#[test]
fn attachment_needs_a_volume_attachment_of_its_volume_and_node() {
    let attached = |volume: &str, node: &str, instance: Option<&str>| {
        let mut observed = observed();
        observed.disks[0].attachments = vec!["i-1".parse().unwrap()];
        observed.before.attachments.push(Attachment {
            volume: Some(volume.to_owned()),
            node: node.to_owned(),
        });
        let instance = instance.map(|id| (node.to_owned(), id.parse().unwrap()));
        observed.after.instances.extend(instance);
        found(&observed)
    };
    let wrong = [(Class::AttachedWithoutVa, "d-used".to_owned())];
    assert_eq!(attached("used", "node-1", Some("i-1")), []);
    assert_eq!(attached("used", "node-2", Some("i-2")), wrong);
    assert_eq!(attached("other", "node-1", Some("i-1")), wrong);
    // The CSINode is gone: the node may be this instance.
    assert_eq!(attached("used", "node-1", None), []);
}

#[test]
fn attached_disk_that_is_deleted_with_its_instance_is_reported_unless_its_category_requires_it() {
    let with = |change: &dyn Fn(&mut Disk)| {
        let mut observed = observed();
        let disk = &mut observed.disks[0];
        disk.attachments = vec!["i-1".parse().unwrap()];
        disk.delete_with_instance = true;
        change(disk);
        found(&observed)
    };
    let finding = (Class::DeletedWithInstance, "d-used".to_owned());
    assert!(with(&|_| {}).contains(&finding));
    assert!(!with(&|disk| disk.attachments.clear()).contains(&finding));
    assert!(!with(&|disk| disk.delete_with_instance = false).contains(&finding));
    assert!(!with(&|disk| disk.category = Category::EphemeralStandard).contains(&finding));
    let mut observed = observed();
    let row = Disk {
        attachments: vec!["i-1".parse().unwrap()],
        delete_with_instance: true,
        ..disk("d-static")
    };
    observed.others.insert("d-static".to_owned(), foreign(row));
    observed.before.volumes.push(volume("pv", "d-static"));
    observed.after.volumes.push(volume("pv", "d-static"));
    let finding = (Class::DeletedWithInstance, "d-static".to_owned());
    assert!(found(&observed).contains(&finding), "a static volume");
}

#[test]
fn volume_of_a_foreign_or_missing_disk_is_reported_if_it_was_there_in_both_readings() {
    for (presence, class) in [
        (foreign(disk("d-else")), Some(Class::Foreign)),
        (Presence::Absent, Some(Class::Missing)),
        (Presence::Found(current(disk("d-else"), true)), None),
    ] {
        let mut observed = observed();
        observed.others.insert("d-else".to_owned(), presence);
        observed.after.volumes.push(volume("pv", "d-else"));
        assert_eq!(found(&observed), [], "created meanwhile");
        observed.before.volumes.push(volume("pv", "d-else"));
        let expected = class.map(|class| (class, "d-else".to_owned()));
        assert_eq!(found(&observed), expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn snapshot_is_leaked_unless_its_content_group_or_clone_exists() {
    let with = |change: &dyn Fn(&mut Observed)| {
        let mut observed = observed();
        observed.snapshots.push(snapshot("s-1"));
        change(&mut observed);
        found(&observed)
    };
    assert_eq!(with(&|_| {}), [(Class::Leaked, "s-1".to_owned())]);
    assert_eq!(with(&|o| o.before.contents.push(content("c", Some("s-1")))), []);
    let of_group = |o: &mut Observed| {
        o.snapshots[0].group = "ssg-1".parse().ok();
        let mut group = content("g", Some("ssg-1"));
        group.kind = ContentKind::Group;
        o.after.contents.push(group);
    };
    assert_eq!(with(&of_group), []);
    let waiting = |o: &mut Observed| {
        let name = (tag::CSI_NAME.to_owned(), format!("snapshot-{SNAPSHOT_UID}"));
        o.snapshots[0].tags.extend([name]);
        o.after.contents.push(content("c", None));
    };
    assert_eq!(with(&waiting), []);
    let clone = |o: &mut Observed, disk_name: &str| {
        let name = (tag::CLONE_FOR.to_owned(), "pvc-2".to_owned());
        o.snapshots[0].tags.extend([name]);
        let name = (tag::CSI_NAME.to_owned(), disk_name.to_owned());
        o.disks[0].tags.extend([name]);
    };
    assert_eq!(with(&|o| clone(o, "pvc-2")), []);
    assert_eq!(with(&|o| clone(o, "pvc-3")).len(), 1);
}

#[test]
fn resources_without_any_reference_are_an_error_unless_allowed() {
    let mut observed = observed();
    observed.before = Volumes::default();
    observed.after = Volumes::default();
    let error = classify(&observed, &rules()).unwrap_err().to_string();
    assert!(
        error.contains("c-test") && error.contains("--allow-unreferenced"),
        "{error}"
    );
    let rules = Rules {
        allow_unreferenced: true,
        ..rules()
    };
    assert_eq!(classify(&observed, &rules).unwrap().findings.len(), 1);
}

#[test]
fn invisible_snapshots_are_noted() {
    let mut observed = observed();
    assert_eq!(report(&observed).notes.len(), 0);
    observed.any_snapshot_visible = false;
    assert!(report(&observed).notes[0].contains("ecs:DescribeSnapshots"));
}

fn ids() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0_u8..6, 0..6)
}

proptest! {
    #[test]
    fn reported_as_leaked_means_unreferenced_owned_and_old(
        owned in ids(), before in ids(), after in ids(), other in ids(), ages in proptest::collection::vec(0_u64..7200, 6),
    ) {
        let handle = |id: &u8| format!("d-{id}");
        let read = |ids: &[u8]| Volumes {
            volumes: ids.iter().map(|id| volume(&format!("pv-{id}"), &handle(id))).collect(),
            other_handles: other.iter().map(handle).collect(),
            ..Volumes::default()
        };
        let owned: BTreeSet<u8> = owned.into_iter().collect();
        let created = |id: u8| ago(Duration::from_secs(ages[usize::from(id)]));
        let disks = owned.iter().map(|id| Disk { created: created(*id), ..disk(&handle(id)) });
        let observed = Observed {
            before: read(&before),
            after: read(&after),
            disks: disks.collect(),
            ..observed()
        };
        let rules = Rules { allow_unreferenced: true, ..rules() };
        let report = classify(&observed, &rules).unwrap();
        let leaked: BTreeSet<String> = report
            .findings
            .iter()
            .filter(|one| one.class == Class::Leaked)
            .map(|one| one.id.clone())
            .collect();
        let unreferenced = owned.iter().filter(|id| {
            !before.contains(id) && !after.contains(id) && !other.contains(id)
        });
        let (old, young): (Vec<_>, Vec<_>) = unreferenced.partition(|id| ages[usize::from(**id)] >= 3600);
        prop_assert_eq!(leaked, old.into_iter().map(handle).collect::<BTreeSet<_>>());
        prop_assert_eq!(report.younger, young.len());
        let strict = Rules { allow_unreferenced: false, ..rules };
        let is_related = owned.is_empty()
            || owned.iter().any(|id| before.contains(id) || after.contains(id) || other.contains(id));
        prop_assert_eq!(classify(&observed, &strict).is_ok(), is_related);
    }
}

#[test]
fn disk_of_a_claim_without_a_volume_is_not_leaked() {
    const UID: &str = "6a0285cc-35e3-4a23-bde8-1b1f0fc2fe26";
    let mut observed = observed();
    for (id, name) in [("d-pending", format!("pvc-{UID}")), ("d-lost", "pvc-1".to_owned())] {
        let mut row = disk(id);
        row.tags.insert(tag::CSI_NAME.to_owned(), name);
        observed.disks.push(row);
    }
    observed.after.claims.insert(UID.to_owned());
    assert_eq!(found(&observed), [(Class::Leaked, "d-lost".to_owned())]);
    observed.after.claims.clear();
    assert_eq!(found(&observed).len(), 2);
}
