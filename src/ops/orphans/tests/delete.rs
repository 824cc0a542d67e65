//! The guards of a deletion.

use super::super::classify::classify;
use super::super::delete::refusal;
use super::super::finding::ResourceId;
use super::*;

#[test]
fn each_guard_refuses_a_deletion() {
    let mut observed = observed();
    observed.disks.push(disk("d-lost"));
    let report = classify(&observed, &rules()).unwrap();
    let lost = disk("d-lost");
    let current = super::current(lost.clone(), true);
    let judge = |id: &str, current: &Current, volumes: &Volumes, older_than| {
        let id = ResourceId::parse(id).unwrap();
        refusal(&id, current, volumes, &report, older_than, now())
    };
    let referenced = Some("an object in Kubernetes refers to it".to_owned());
    let volumes = &observed.after;
    assert_eq!(judge("d-lost", &current, volumes, HOUR), None);
    let not_owned = Current {
        is_owned: false,
        tags: Tags::new(),
        ..current.clone()
    };
    assert_eq!(
        judge("d-lost", &not_owned, volumes, HOUR),
        Some("it has no cluster tag".to_owned())
    );
    let mut bound = volumes.clone();
    bound.volumes.push(volume("pv", "d-lost"));
    assert_eq!(judge("d-lost", &current, &bound, HOUR), referenced);
    let attached = Current {
        row: Some(Box::new(Disk {
            attachments: vec!["i-1".parse().unwrap()],
            ..lost
        })),
        ..current.clone()
    };
    assert_eq!(
        judge("d-lost", &attached, volumes, HOUR),
        Some("it is attached to i-1".to_owned())
    );
    let young = Some("it is 2h old, and --older-than is 3h".to_owned());
    assert_eq!(judge("d-lost", &current, volumes, 3 * HOUR), young);
    let unknown = judge("d-else", &current, volumes, HOUR).unwrap();
    assert!(unknown.starts_with("the report does not have it"), "{unknown}");
    let of_clone = Current {
        tags: Tags::from([(tag::CLONE_FOR.to_owned(), format!("pvc-{UID}"))]),
        ..current.clone()
    };
    let mut claimed = volumes.clone();
    claimed.claims.insert(UID.to_owned());
    assert_eq!(judge("d-lost", &of_clone, &claimed, HOUR), referenced);
    let in_group = Current {
        group: "ssg-1".parse().ok(),
        ..current
    };
    let mut grouped = volumes.clone();
    grouped.other_handles.insert("ssg-1".to_owned());
    assert_eq!(judge("d-lost", &in_group, &grouped, HOUR), referenced);
}

const UID: &str = "6a0285cc-35e3-4a23-bde8-1b1f0fc2fe26";
